"""What Label Studio asks of an ML backend, as functions from JSON to JSON; the HTTP around them is in `labelstudio.py`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from seqmix.data.formats.charspans import list_of
from seqmix.errors import DataError
from seqmix.serve.labelstudio.labeling import Labeling, parse_labeling
from seqmix.serve.labelstudio.tasks import (
    Annotation,
    Json,
    annotation_of,
    annotations_of,
    data_of,
    id_of,
)
from seqmix.serve.labelstudio.worker import Worker

_CREATED = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
_DELETED = {"ANNOTATIONS_DELETED": "annotations", "TASKS_DELETED": "tasks"}


class Backend:
    """One Label Studio project, served from one folder."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self.answers, self.rounds = worker, worker.answers, worker.rounds

    def health(self) -> Json:
        """That it is up, and how far it is."""
        counts, last = self.answers.counts(), self.worker.current.round
        return {
            "status": "UP",
            "model_class": "seqmix",
            "model_version": self.rounds.version(),
            "phase": self.worker.phase,
            "tasks": counts.tasks,
            "labeled": counts.labeled,
            "trained_on": last.labeled if last is not None and last.kind == "trained" else 0,
            "left_out": last.left_out if last is not None else 0,
            "error": self.worker.error or self.worker.link_error or None,
        }

    def setup(self, body: Json) -> Json:
        """Label Studio connects, or asks for the version. What it sends along to log in with is not looked at."""
        project, schema = body.get("project"), body.get("schema")
        if not isinstance(project, str) or not isinstance(schema, str):
            raise DataError('expected "project" and "schema" to be strings')
        self._ours(project, schema)
        self.worker.notice()
        return {"model_version": self.rounds.version()}

    def predict(self, body: Json) -> Json:
        """A prediction a task, in the order of the tasks. One whose text is not there gets none."""
        labeling = self._ours(body.get("project"), body.get("label_config"))
        tasks = self._keep(list_of(body, "tasks"))
        current = self.worker.refresh()
        known, version = self.rounds.ranks(tasks), self.rounds.version()
        if current.round is not None or current.tagger is not None:
            new = [
                (id, data)
                for id, data in tasks
                if id not in known and isinstance(data.get(labeling.key), str)
            ]
            known |= {rank.task: rank for rank in self.worker.rank(new, current, labeling)}
        results = [
            {"result": known[id].result, "score": known[id].score, "model_version": version}
            if id in known
            else []
            for id, _ in tasks
        ]
        return {"results": results, "model_version": version}

    def webhook(self, body: Json) -> Json:
        """Label Studio tells what people did. Events that do not concern us are taken and forgotten."""
        action, project = body.get("action"), body.get("project")
        if not isinstance(action, str):
            raise DataError('expected "action" to be a string')
        if isinstance(project, dict):
            self._ours(_named(project), project.get("label_config"))
        if action in _CREATED:
            self._annotated(body)
        elif action == "TASKS_CREATED":
            self._keep(_listed(body, "tasks"))
        elif action in _DELETED:
            table = _DELETED[action]
            self.answers.delete(
                table, [id_of(one, "what was deleted") for one in _listed(body, table)]
            )
        self.worker.notice(train=action == "START_TRAINING")
        return {"status": "ok", "model_version": self.rounds.version()}

    def train(self, body: Json) -> Json:
        """What older servers call instead of the webhook START_TRAINING, with all annotated tasks."""
        self._ours(body.get("project"), body.get("label_config"))
        self._keep(_listed(body, "annotations") if body.get("annotations") is not None else [])
        self.worker.notice(train=True)
        return {"status": "ok", "model_version": self.rounds.version()}

    def _ours(self, project: Any, xml: Any) -> Labeling:
        """What is labeled, once it is certain that the request is about our project. The first one that can be labeled becomes ours."""
        if isinstance(xml, str):
            parse_labeling(xml)
        if isinstance(project, str):
            self.answers.bind(project)
        if isinstance(xml, str) and self.answers.configure(xml):
            self.worker.notice(train=True)
        return self._labeling

    @property
    def _labeling(self) -> Labeling:
        known = self.answers.labeling
        if known is None:
            raise DataError(
                "expected Label Studio to call /setup first, or to send the labeling configuration along"
            )
        return known

    def _annotated(self, body: Json) -> None:
        tasks = {id_of(task, "a task"): data_of(task) for task in _listed(body, "task")}
        self.answers.keep(
            tasks.items(),
            [_annotation(record, tasks, self._labeling) for record in _listed(body, "annotation")],
        )

    def _keep(self, records: Iterable[Any]) -> list[tuple[int, Json]]:
        """Tasks with the annotations they have already."""
        control, given = self._labeling.control, list(records)
        tasks = [(id_of(record, "a task"), data_of(record)) for record in given]
        self.answers.keep(
            tasks, [one for record in given for one in annotations_of(record, control)]
        )
        self.worker.notice()
        return tasks


def _annotation(record: Any, tasks: dict[int, Json], labeling: Labeling) -> Annotation:
    task = record.get("task") if isinstance(record, dict) else None
    if type(task) is not int or task not in tasks:
        raise DataError("expected an annotation to come with its task", text=str(record))
    return annotation_of(record, task, labeling.control)


def _named(project: Json) -> str:
    """A project as /setup names it: its id and the second of its creation."""
    id, created = id_of(project, "a project"), project.get("created_at")
    try:
        return f"{id}.{int(datetime.fromisoformat(str(created)).timestamp())}"
    except (ValueError, OverflowError, OSError) as error:
        raise DataError(
            'expected "created_at" of the project to be a time', text=str(created)
        ) from error


def _listed(body: Json, key: str) -> list[Any]:
    """What stands at a key: Label Studio sends one object or a list of them, by the action."""
    found = body.get(key)
    return [found] if isinstance(found, dict) else list_of(body, key)
