"""Target: what Label Studio sends to its backend, and the training that learns from it."""

from __future__ import annotations

import asyncio
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from fuzz.requests import asked
from fuzz.target import BETWEEN, Finding, Target
from seqmix.app.suggesting import guesses
from seqmix.data.spans import OUTSIDE
from seqmix.data.tagset import TagSet
from seqmix.loop.learner import ActiveLearner
from seqmix.query.policies import FIRST
from seqmix.serve.labelstudio.app import create_app
from seqmix.serve.labelstudio.protocol import Backend, BackendParts
from seqmix.serve.project import TRAIN_NOW, Project, create_project, open_project
from seqmix.serve.settings import SETTINGS, ProjectSettings
from seqmix.serve.trainer.parts import Parts as TrainerParts
from seqmix.serve.trainer.trainer import Trainer
from seqmix.testing import WordTagger

_HEADERS = {b"host": b"127.0.0.1:9090", b"content-type": b"application/json"}
_MOST = 6  # requests of one input
_CONFIG = (
    '<View><Labels name="l" toName="t"><Label value="PER"/></Labels>'
    '<Text name="t" value="$text"/></View>'
)
_PROJECT = {"id": 7, "created_at": "2026-11-15T11:55:15Z", "label_config": _CONFIG}
_SETUP = ("/setup", {"project": "7.1794743715", "schema": _CONFIG})
_TASK = {"id": 1, "data": {"text": "Lena left Oslo."}}
_REGION = {
    "from_name": "l",
    "to_name": "t",
    "type": "labels",
    "value": {"start": 0, "end": 4, "text": "Lena", "labels": ["PER"]},
}
_ANNOTATION = {
    "id": 3,
    "task": 1,
    "result": [_REGION],
    "was_cancelled": False,
    "ground_truth": False,
    "updated_at": "2026-11-15T12:00:00Z",
}
_OTHER = {
    "id": 2,
    "data": {"text": "🚀 Lena", "tokens": [[0, 1], [2, 6]]},
    "annotations": [{**_ANNOTATION, "id": 4}],
}
_CREATED = ("/webhook", {"action": "ANNOTATION_CREATED", "annotation": _ANNOTATION, "task": _TASK})
_SEEDS: tuple[tuple[tuple[str, Any], ...], ...] = (
    (_SETUP,),
    (
        (
            "/predict",
            {
                "tasks": [_TASK, _OTHER],
                "project": "7.1794743715",
                "label_config": _CONFIG,
                "params": {},
            },
        ),
    ),
    (_SETUP, _CREATED),
    (
        _SETUP,
        ("/webhook", {"action": "TASKS_CREATED", "project": _PROJECT, "tasks": [_TASK, _OTHER]}),
        ("/predict", {"tasks": [_TASK]}),
    ),
    (_SETUP, _CREATED, ("/webhook", {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 3}]})),
    (_SETUP, _CREATED, ("/webhook", {"action": "TASKS_DELETED", "tasks": [{"id": 1}]}), _CREATED),
    (
        _SETUP,
        ("/webhook", {"action": "START_TRAINING", "project": _PROJECT}),
        ("/train", {"annotations": [_OTHER]}),
    ),
)


def targets() -> list[Target]:
    """The Label Studio backend."""
    return [
        Target(
            "labelstudio-backend",
            _talk,
            lambda: [BETWEEN.join(map(_spelled, seed)) for seed in _SEEDS],
            0.2,
        )
    ]


def _spelled(request: tuple[str, Any]) -> bytes:
    return f"{request[0]}\n{json.dumps(request[1])}".encode()


class _NoTrainer:
    """A trainer that never runs: the target trains by itself."""

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def trouble(self) -> None:
        """Return that nothing is wrong."""


def _talk(data: bytes, folder: Path) -> None:
    """No answer is a 5xx, and once something was kept a model can be made of it."""
    place = folder / "studio"
    shutil.rmtree(place, ignore_errors=True)

    def create(tags: tuple[str, ...], name: str) -> None:
        create_project(place, [], ProjectSettings(name, tags), may_be_empty=True)

    parts = BackendParts(
        lambda: open_project(place),
        create,
        lambda folder: _NoTrainer(),
        lambda folder: partial(guesses, WordTagger.load(folder)),
    )
    backend = Backend(place, parts)
    app = create_app(backend)
    try:
        for request in data.split(BETWEEN)[:_MOST]:
            path, _, body = request.partition(b"\n")
            status, answer = _LOOP.run_until_complete(asked(app, b"POST " + path, _HEADERS, body))
            if status >= 500 or (
                status >= 400 and not isinstance(json.loads(answer).get("error"), str)
            ):
                raise Finding(f"{status} to {path!a}: {answer[:200]!a}")
    finally:
        backend.close()
    if (place / SETTINGS).exists():
        with open_project(place) as project:
            project.store.write_note(TRAIN_NOW, 1)
            Trainer(project, _trainer_parts(project)).step()


def _trainer_parts(project: Project) -> TrainerParts:
    tags = TagSet.ordered(
        [OUTSIDE, *(prefix + tag for tag in project.settings.tags for prefix in ("B-", "I-"))]
    )

    def untrained(rng: Any) -> Any:
        return WordTagger().start(tags, rng)

    learner = partial(
        ActiveLearner, tagger=lambda s, steps, rng, last: WordTagger().fit(s, rng, tags), rate=0
    )
    return TrainerParts(learner, untrained, FIRST, guesses)


_LOOP = asyncio.new_event_loop()
