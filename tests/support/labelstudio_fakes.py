"""A Label Studio project without Label Studio: what it sends, and a trainer in a thread."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

from seqmix.app.suggesting import guesses
from seqmix.data.tagset import TagSet
from seqmix.errors import SeqMixError
from seqmix.loop.learner import ActiveLearner
from seqmix.query.policies import FIRST
from seqmix.serve.labelstudio.client import LabelStudioClient
from seqmix.serve.labelstudio.protocol import Backend, BackendParts
from seqmix.serve.project import START, Project, create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.trainer.parts import Parts
from seqmix.serve.trainer.process import Heartbeat
from seqmix.serve.trainer.trainer import Trainer
from seqmix.testing import WordTagger

CONFIG = (
    '<View><Labels name="label" toName="text">'
    '<Label value="PER"/><Label value="LOC" background="red"/></Labels>'
    '<Text name="text" value="$text" granularity="word"/></View>'
)
UID, PROJECT = (
    "7.1794743715",
    {
        "id": 7,
        "created_at": "2026-11-15T11:55:15.056079Z",
        "label_config": CONFIG,
        "token": "not-ours-to-keep",
    },
)


class ThreadTrainer:
    """The trainer of a project in a thread, with a tagger that learns in no time."""

    def __init__(self, folder: Path, **parts: Any) -> None:
        self.folder, self.parts = folder, parts
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def trouble(self) -> str | None:
        return None

    def _run(self) -> None:
        while not self._stop.is_set():  # once for every set of tags
            with open_project(self.folder) as project:
                heartbeat = Heartbeat(project, lambda job: job())
                heartbeat.report("waiting")
                trainer = Trainer(project, parts(project, **self.parts), heartbeat.report)
                while (
                    not self._stop.is_set() and project.store.read_tags() == project.settings.tags
                ):
                    try:
                        trainer.step()
                    except SeqMixError as error:
                        heartbeat.report(f"the last training failed: {error}", failed=True)
                    self._stop.wait(0.05)


def parts(project: Project, policy: str = "nte", fit: Any = None, **more: Any) -> Parts:
    """Return the parts of a trainer; `fit` takes the place of what a training does."""
    tags = TagSet.of_types(project.settings.tags)
    place = project.models / START
    start = WordTagger.load(place) if place.exists() else None

    def learn(sentences: Any, steps: Any, rng: Any, last: Any) -> WordTagger:
        tagger = WordTagger() if last is None else last.twin()
        return tagger.fit(sentences, rng, tags, warm=last is not None)

    warm = start is not None
    learner = partial(ActiveLearner, tagger=fit or learn, policy=policy, rate=0, warm=warm)
    untrained = lambda rng: WordTagger().start(tags, rng)  # noqa: E731
    return Parts(learner, untrained, FIRST, guesses, start=start, without_entity=0.0, **more)


def backend(
    folder: Path,
    given: WordTagger | None = None,
    client: LabelStudioClient | None = None,
    min_new: int = 3,
    audit: float = 0.0,
    **options: Any,
) -> Backend:
    """A backend whose trainings take no time."""

    def create(tags: tuple[str, ...], name: str) -> None:
        settings = ProjectSettings(name, tags, batch=min_new, audit_share=audit, augment="none")
        create_project(folder, [], settings, may_be_empty=True)

    def open_with_model() -> Project:
        project = open_project(folder)
        if given is not None:
            given.save(project.models / START)
        return project

    train = partial(ThreadTrainer, **options)
    load = lambda place: partial(guesses, WordTagger.load(place))  # noqa: E731
    return Backend(folder, BackendParts(open_with_model, create, train, load, client))


def task(id: int, text: str, *annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    """A task as /predict gets it."""
    return {
        "id": id,
        "data": {"text": text, **data},
        "project": 7,
        "annotations": list(annotations),
        "predictions": [],
    }


def region(text: str, found: str, label: str, **more: Any) -> dict[str, Any]:
    start = text.index(found)
    value = {"start": start, "end": start + len(found), "text": found, "labels": [label]}
    return {
        "id": "x",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": value,
        **more,
    }


def annotation(id: int, task: int, *result: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {
        "was_cancelled": False,
        "ground_truth": False,
        "updated_at": f"2026-11-15T11:55:{id % 60:02d}.000000Z",
    }
    return {"id": id, "task": task, "result": list(result), **base, **more}


def event(action: str, **payload: Any) -> dict[str, Any]:
    return {"action": action, "project": PROJECT, **payload}


def created(
    id: int,
    task_id: int,
    text: str,
    *result: dict[str, Any],
    action: str = "ANNOTATION_CREATED",
    **more: Any,
) -> dict[str, Any]:
    own = {key: value for key, value in task(task_id, text).items() if key != "annotations"}
    return event(action, annotation=annotation(id, task_id, *result, **more), task=own)
