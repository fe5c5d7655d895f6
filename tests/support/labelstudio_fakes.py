"""A Label Studio project without Label Studio: what it sends, a tagger that learns in no time, and a round that runs in a thread."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seqmix.data.tagset import TagSet
from seqmix.loop.learner import ActiveLearner
from seqmix.query.policies import FIRST
from seqmix.query.uncertainty import token_entropy
from seqmix.serve.labelstudio.answers import Answers
from seqmix.serve.labelstudio.database import File
from seqmix.serve.labelstudio.learning import Parts, run_round
from seqmix.serve.labelstudio.protocol import Backend
from seqmix.serve.labelstudio.rounds import Rounds
from seqmix.serve.labelstudio.worker import Worker

CONFIG = (
    '<View><Labels name="label" toName="text"><Label value="PER"/><Label value="LOC" background="red"/></Labels>'
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


@dataclass(frozen=True)
class FakePath:
    tags: tuple[str, ...]
    probability: float
    by_token: tuple[float, ...]


class Memory:
    """p(tag | word) as it was seen, all alike for a word that was not."""

    def __init__(self, tags: tuple[str, ...], counts: dict[str, dict[str, float]]) -> None:
        self.tag_set, self.counts = TagSet(tags), counts

    def probabilities(self, sentences: Any) -> Any:
        for sentence in sentences:
            rows = [
                [1 + 9 * self.counts.get(token, {}).get(tag, 0.0) for tag in self.tag_set.tags]
                for token in sentence.tokens
            ]
            table = np.array(rows, dtype=np.float32).reshape(-1, len(self.tag_set))
            yield table / table.sum(axis=1, keepdims=True)

    def unsure(self, sentences: Any, measure: str) -> Any:
        assert measure == "entropy"  # all that is asked here
        return map(token_entropy, self.probabilities(sentences))

    def best_paths(
        self, sentences: Any, n: int = 1, legal: bool = True, by_token: bool = False
    ) -> Any:
        for probs in self.probabilities(sentences):
            tags = tuple(self.tag_set.tags[i] for i in probs.argmax(axis=1))
            yield [
                FakePath(
                    tags,
                    float(probs.max(axis=1).prod()),
                    tuple(map(float, probs.max(axis=1))) if by_token else (),
                )
            ]

    def embeddings(self, sentences: Any) -> Any:
        for sentence in sentences:
            yield np.array(
                [[len(token), sum(map(ord, token)) % 17] for token in sentence.tokens],
                dtype=np.float32,
            )

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "memory.json").write_text(json.dumps([self.tag_set.tags, self.counts]))

    @classmethod
    def load(cls, folder: Path) -> Memory:
        tags, counts = json.loads((folder / "memory.json").read_text())
        return cls(tuple(tags), counts)


def parts(given: Memory | None = None, **changes: Any) -> Parts:
    def learner(tag_set: TagSet, labeled: Any, unlabeled: Any) -> Any:
        def fit(sentences: Any, steps: Any, rng: Any, last: Any) -> Any:
            counts: dict[str, Counter[str]] = defaultdict(Counter)
            if last is not None:
                counts |= {token: Counter(own) for token, own in last.counts.items()}
            for sentence in sentences:
                for token, row in zip(sentence.tokens, sentence.tags, strict=True):
                    counts[token][row] += 1
            return Memory(tag_set.tags, {token: dict(own) for token, own in counts.items()})

        return partial(ActiveLearner, tagger=fit, policy=changes.get("policy", "nte"), rate=0)

    return Parts(
        learner,
        lambda tag_set: Memory(tag_set.tags, {}),
        FIRST,
        given,
        batch=changes.get("batch", 100),
    )


class ThreadJob:
    """A round in a thread, with an exit code as a process has one."""

    def __init__(self, work: Callable[[], object], file: File) -> None:
        self.exitcode: int | None = None
        self._thread = threading.Thread(target=self._run, args=(work, file), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], object], file: File) -> None:
        try:
            work()
            self.exitcode = 0
        except Exception as error:
            file.set("error", str(error))
            self.exitcode = 1

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def terminate(self) -> None:
        self.exitcode = -15


def backend(
    folder: Path,
    given: Memory | None = None,
    round: Callable[[Path], object] | None = None,
    **options: Any,
) -> Backend:
    """A backend whose rounds take no time; `round` replaces what a round does."""
    file = File(folder)
    own = {name: options.pop(name) for name in ("policy", "batch") if name in options}
    work = round or (lambda place: run_round(place, parts(given, **own)))
    options = {"min_new": 3, "settle": 0.05, **options}
    worker = Worker(
        Answers(file),
        Rounds(file),
        lambda: ThreadJob(lambda: work(folder), file),
        Memory.load,
        given,
        **options,
    )
    return Backend(worker)


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
