"""Target: what Label Studio sends to its backend, one request after another, and the round that learns from what was kept of it."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from fuzz.requests import asked
from fuzz.standin import Standin
from fuzz.target import BETWEEN, Finding, Target
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.loop.learner import ActiveLearner
from seqmix.protocols import Tagger
from seqmix.query.policies import POLICIES
from seqmix.serve.labelstudio.answers import Answers
from seqmix.serve.labelstudio.app import create_app
from seqmix.serve.labelstudio.database import File
from seqmix.serve.labelstudio.learning import Parts, run_round
from seqmix.serve.labelstudio.protocol import Backend
from seqmix.serve.labelstudio.rounds import Rounds
from seqmix.serve.labelstudio.worker import Worker

_HEADERS = {b"host": b"127.0.0.1:9090", b"content-type": b"application/json"}
_MOST = 6  # requests of one input
_CONFIG = '<View><Labels name="l" toName="t"><Label value="PER"/></Labels><Text name="t" value="$text"/></View>'
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


def _talk(data: bytes, folder: Path) -> None:
    """No answer is a 5xx, and once something was kept a round can be made of it."""
    place = folder / "studio"
    shutil.rmtree(place, ignore_errors=True)
    file = File(place)
    try:
        given = cast(Any, Standin(TagSet(("O", "B-PER", "I-PER"))))
        app = create_app(
            Backend(Worker(Answers(file), Rounds(file), _no_process, lambda path: given, given))
        )
        for request in data.split(BETWEEN)[:_MOST]:
            path, _, body = request.partition(b"\n")
            status, said = _LOOP.run_until_complete(asked(app, b"POST " + path, _HEADERS, body))
            if status >= 500 or (
                status >= 400 and not isinstance(json.loads(said).get("error"), str)
            ):
                raise Finding(f"{status} to {path!a}: {said[:200]!a}")
        run_round(place, _PARTS)
    finally:
        file.close()


def _no_process() -> Any:
    raise AssertionError("the worker's thread is not started")


def _learner(tags: TagSet, *_: Sequence[Sentence]) -> Callable[..., ActiveLearner]:
    return partial(
        ActiveLearner,
        tagger=lambda sentences, *_: cast(Tagger, Standin(tags, sentences)),
        rate=0,
    )


_LOOP = asyncio.new_event_loop()
_PARTS = Parts(_learner, lambda tags: cast(Tagger, Standin(tags)), POLICIES["nte"])
