"""What Label Studio asks of an ML backend, as functions from JSON to JSON; HTTP is in `app`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from seqmix.data.formats.charspans import list_of
from seqmix.errors import DataError
from seqmix.serve.labelstudio.client import LabelStudioClient
from seqmix.serve.labelstudio.external import ANNOTATION, TASK, TaskCounts
from seqmix.serve.labelstudio.labeling import Labeling, parse_labeling
from seqmix.serve.labelstudio.mirror import NOT_YET, Mirror
from seqmix.serve.labelstudio.predictions import Suggest, TaskPredictions
from seqmix.serve.labelstudio.sync import Sync
from seqmix.serve.labelstudio.tasks import (
    Annotation,
    Json,
    annotation_of,
    annotations_of,
    data_of,
    id_of,
)
from seqmix.serve.project import TRAIN_NOW, Project
from seqmix.serve.project_status import ALIVE, NOTE, WAITING
from seqmix.serve.settings import SETTINGS
from seqmix.serve.trainer.supervisor import Supervisor

_CREATED = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
_DELETED = {
    "ANNOTATIONS_DELETED": ("annotations", ANNOTATION),
    "TASKS_DELETED": ("tasks", TASK),
}


@dataclass(frozen=True)
class BackendParts:
    """What a backend is put together from."""

    open: Callable[[], Project]  # the project in the folder
    create: Callable[[tuple[str, ...], str], None]  # a new one there, with tags and a name
    train: Callable[[Path], Supervisor]
    load: Callable[[Path | str], Suggest]  # a tagger
    client: LabelStudioClient | None = None


class Backend:
    """One Label Studio project, served from one project folder."""

    def __init__(self, folder: Path, parts: BackendParts) -> None:
        self.folder, self.parts = folder, parts
        self._opening = threading.RLock()
        self._mirror: Mirror | None = None
        self._predictions: TaskPredictions | None = None
        self._sync: Sync | None = None
        self._trainer: Supervisor | None = None

    def start(self) -> None:
        """Open the project, if there is one already."""
        if (self.folder / SETTINGS).exists():
            self._open()

    def close(self) -> None:
        """End the trainer and let go of the project."""
        with self._opening:
            for part in (self._sync, self._trainer):
                if part is not None:
                    part.stop()
            if self._mirror is not None:
                self._mirror.project.close()

    def health(self) -> Json:
        """Return that it is up, and how far it is."""
        mirror, sync, trainer = self._mirror, self._sync, self._trainer
        state: Json = {"status": "UP", "model_class": "seqmix", "model_version": self.version()}
        state |= {
            "phase": WAITING,
            **asdict(TaskCounts()),
            "trained_on": 0,
            "audit": None,
            "error": None,
        }
        if mirror is None or sync is None or trainer is None or self._predictions is None:
            return state
        current, note = self._predictions.refresh(), mirror.store.read_note(NOTE) or {}
        is_silent = abs(time.time() - float(note.get("at", 0.0))) > ALIVE
        phase, failed = str(note.get("phase", WAITING)), bool(note.get("failed"))
        trouble = trainer.trouble() or (phase if failed and not is_silent else None)
        return state | {
            "model_version": current.version,
            "phase": WAITING if trouble else "starting" if is_silent else phase,
            **asdict(mirror.counts()),
            "trained_on": 0 if current.generation is None else current.generation.labeled,
            "audit": None if sync.audit is None else asdict(sync.audit),
            "error": trouble or self._predictions.error or sync.error or None,
        }

    def version(self) -> str:
        """Return the model version of the newest order."""
        return "seqmix-0000" if self._predictions is None else self._predictions.refresh().version

    def versions(self) -> Json:
        """Return the one model version there is."""
        return {"versions": [self.version()]}

    def setup(self, body: Json) -> Json:
        """Take the project and its labeling configuration; secrets sent along are ignored."""
        project, schema = body.get("project"), body.get("schema")
        if not isinstance(project, str) or not isinstance(schema, str):
            raise DataError('expected "project" and "schema" to be strings')
        self._ours(project, schema)
        return {"model_version": self.version()}

    def predict(self, body: Json) -> Json:
        """Return one prediction per task, in the order of the tasks; none for one without text."""
        mirror, labeling = self._ours(body.get("project"), body.get("label_config"))
        tasks = self._keep(mirror, labeling, list_of(body, "tasks"))
        assert self._predictions is not None
        predictions, version = self._predictions.of(tasks, labeling), self.version()
        results = [
            []
            if prediction is None
            else {"result": prediction.result, "score": prediction.score, "model_version": version}
            for prediction in predictions
        ]
        return {"results": results, "model_version": version}

    def webhook(self, body: Json) -> Json:
        """Take what people did; events that do not concern us are ignored."""
        action, project = body.get("action"), body.get("project")
        if not isinstance(action, str):
            raise DataError('expected "action" to be a string')
        mirror = self._mirror
        if isinstance(project, dict):
            mirror, _ = self._ours(_project_name(project), project.get("label_config"))
        if action in (*_CREATED, *_DELETED, "TASKS_CREATED", "START_TRAINING"):
            mirror, labeling = self._ours(None, None)
            if action in _CREATED:
                self._annotated(mirror, labeling, body)
            elif action == "TASKS_CREATED":
                self._keep(mirror, labeling, _listed(body, "tasks"))
            elif action in _DELETED:
                key, kind = _DELETED[action]
                mirror.delete(
                    kind, [id_of(item, "what was deleted") for item in _listed(body, key)]
                )
            else:
                self._train_now(mirror)
        self._notice()
        return {"status": "ok", "model_version": self.version()}

    def train(self, body: Json) -> Json:
        """Train now: what older servers call instead of a webhook, with all annotated tasks."""
        mirror, labeling = self._ours(body.get("project"), body.get("label_config"))
        annotated = _listed(body, "annotations") if body.get("annotations") is not None else []
        self._keep(mirror, labeling, annotated)
        self._train_now(mirror)
        return {"status": "ok", "model_version": self.version()}

    def _ours(self, project: Any, xml: Any) -> tuple[Mirror, Labeling]:
        """Return the project and what is labeled, once it is certain that the request is about it.

        The first configuration that can be labeled makes the project, if there is none.
        """
        labeling = parse_labeling(xml) if isinstance(xml, str) else None
        if isinstance(project, str):
            _check_name(project)
        with self._opening:
            if self._mirror is None:
                if labeling is None:
                    raise DataError(NOT_YET)
                id = str(project).partition(".")[0] if isinstance(project, str) else None
                name = f"Label Studio project {id}" if id else self.folder.absolute().name
                self.parts.create(tuple(labeling.tags.values()), name)
                self._open()
            mirror = self._mirror
            assert mirror is not None
            if isinstance(project, str):
                mirror.bind(project)
            if isinstance(xml, str) and mirror.configure(xml):
                self._train_now(mirror)
        return mirror, mirror.known_labeling()

    def _open(self) -> None:
        project = self.parts.open()
        try:
            mirror = Mirror(project)
            predictions = TaskPredictions(mirror, self.parts.load)
            # the newest tagger is loaded first, so that the first prediction need not wait
            predictions.refresh()
        except BaseException:
            project.close()
            raise
        self._sync, self._trainer = (
            Sync(mirror, predictions, self.parts.client),
            self.parts.train(self.folder),
        )
        self._predictions, self._mirror = predictions, mirror
        self._sync.start()
        self._trainer.start()

    def _annotated(self, mirror: Mirror, labeling: Labeling, body: Json) -> None:
        tasks = {id_of(task, "a task"): data_of(task) for task in _listed(body, "task")}
        records = _listed(body, "annotation")
        mirror.keep(tasks.items(), [_annotation(record, tasks, labeling) for record in records])

    def _keep(
        self, mirror: Mirror, labeling: Labeling, records: Iterable[Any]
    ) -> list[tuple[int, Json]]:
        """Keep tasks with the annotations they have already."""
        records = list(records)
        tasks = [(id_of(record, "a task"), data_of(record)) for record in records]
        control = labeling.control
        mirror.keep(tasks, [a for record in records for a in annotations_of(record, control)])
        self._notice()
        return tasks

    def _train_now(self, mirror: Mirror) -> None:
        mirror.store.write_note(TRAIN_NOW, time.time())

    def _notice(self) -> None:
        if self._sync is not None:
            self._sync.notice()


def _annotation(record: Any, tasks: dict[int, Json], labeling: Labeling) -> Annotation:
    task = record.get("task") if isinstance(record, dict) else None
    if type(task) is not int or task not in tasks:
        raise DataError("expected an annotation to come with its task", text=str(record))
    return annotation_of(record, task, labeling.control)


def _project_name(project: Json) -> str:
    """Return a project as /setup names it: its id and the second of its creation."""
    id, created = id_of(project, "a project"), project.get("created_at")
    try:
        return f"{id}.{int(datetime.fromisoformat(str(created)).timestamp())}"
    except (ValueError, OverflowError, OSError) as error:
        raise DataError(
            'expected "created_at" of the project to be a time', text=str(created)
        ) from error


def _check_name(project: str) -> None:
    id, _, created = project.partition(".")
    if not (id.isdecimal() and created.isdecimal() and len(project) <= 50):
        raise DataError(
            'expected "project" to name a Label Studio project, as in 1.1700000000', text=project
        )


def _listed(body: Json, key: str) -> list[Any]:
    """Return the list at a key: Label Studio sends one object or several, by the action."""
    value = body.get(key)
    return [value] if isinstance(value, dict) else list_of(body, key)
