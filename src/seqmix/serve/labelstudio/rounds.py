"""Finished rounds: which tagger is the last, and where each task stands.

A task's score says how soon it is wanted: (place + ½) / number of tasks, the most wanted first. Label Studio asks in ascending order of
scores, so that is the policy's order. A round is published in one transaction, and only if no other was published since it began.
"""

from __future__ import annotations

import json
import shutil
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from math import exp
from pathlib import Path
from typing import Any

from seqmix.errors import RunError
from seqmix.serve.labelstudio.answers import ANSWER, digest, read_data
from seqmix.serve.labelstudio.database import File
from seqmix.serve.labelstudio.tasks import Json

_STEPS = 2000  # of the ladder
_MODELS_KEPT = 2


@dataclass(frozen=True)
class Rank:
    """Where a task stands, and what was found in it."""

    task: int
    score: float  # the lower, the sooner
    result: list[Json]


@dataclass(frozen=True)
class Round:
    """A finished round."""

    number: int
    kind: str  # trained · given: ranked with the tagger given · untrained: ranked before there were labels
    changes: int  # what had been counted when it began
    tasks: int
    labeled: int = 0
    left_out: int = 0  # annotations that do not fit their text
    seconds: float = 0.0
    ladder: tuple[float, ...] = field(
        default=(), repr=False
    )  # entropies of the ranked tasks, lowest first, thinned out

    def place(self, entropy: float) -> float:
        """The score of a task that was not there when the others were ranked: before all that the tagger is surer of."""
        if not self.ladder:
            return exp(-entropy)
        return 1 - (bisect_left(self.ladder, entropy) + 0.25) / (len(self.ladder) + 0.5)


class Rounds:
    """The rounds of one project."""

    def __init__(self, file: File) -> None:
        self.file = file

    def last(self) -> Round | None:
        """The last finished round."""
        known: dict[str, Any] | None = self.file.get("round")
        return None if known is None else Round(**{**known, "ladder": tuple(known["ladder"])})

    def version(self) -> str:
        """The model version Label Studio is told. It names the folder too, so that a new one never meets the predictions of an old one."""
        last = self.last()
        return f"seqmix-{self.file.get('name')}-{0 if last is None else last.number:04d}"

    def publish(self, round: Round, ranks: Iterable[tuple[Rank, Json]]) -> None:
        """A finished round with the rank of each task (and the data it was ranked by), all at once."""
        with self.file.writing():
            last = self.last()
            if round.number != (0 if last is None else last.number) + 1:
                raise RunError(
                    f"round {round.number} is out of date: another process has published one since it began"
                )
            self.file.set("round", asdict(round))
            self.file.rows("DELETE FROM ranks")
            self._rank(ranks)
        for old in self.folder.glob("[0-9]*"):
            if old.name.isdecimal() and int(old.name) <= round.number - _MODELS_KEPT:
                shutil.rmtree(old, ignore_errors=True)

    def add(self, round: Round, ranks: Iterable[tuple[Rank, Json]]) -> None:
        """More ranks for a round, if it still is the last."""
        with self.file.writing():
            if self.last() == round:
                self._rank(ranks)

    def _rank(self, ranks: Iterable[tuple[Rank, Json]]) -> None:
        one = "INSERT OR REPLACE INTO ranks SELECT ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM tasks WHERE id = ?)"
        self.file.many(
            one,
            ((r.task, digest(data), r.score, json.dumps(r.result), r.task) for r, data in ranks),
        )

    def ranks(self, tasks: Iterable[tuple[int, Json]]) -> dict[int, Rank]:
        """The ranks of these tasks, where their data is still what was ranked."""
        found = {}
        for id, data in tasks:
            for score, result in self.file.rows(
                "SELECT score, result FROM ranks WHERE task = ? AND digest = ?", id, digest(data)
            ):
                found[id] = Rank(id, score, json.loads(result))
        return found

    def wanted(self) -> list[Rank]:
        """The ranks of the tasks that have no answer yet, the most wanted first."""
        waiting = f"SELECT task, score, ranks.result FROM ranks JOIN tasks ON tasks.id = task WHERE {ANSWER} IS NULL ORDER BY score, task"
        return [
            Rank(task, score, json.loads(result)) for task, score, result in self.file.rows(waiting)
        ]

    def unranked(self, limit: int) -> list[tuple[int, Json]]:
        """Some tasks without answer that the last ranking does not know, or knew with other data."""
        missing = f"""SELECT id, data FROM tasks WHERE {ANSWER} IS NULL
            AND NOT EXISTS (SELECT 1 FROM ranks WHERE task = tasks.id AND ranks.digest = tasks.digest)
            ORDER BY id LIMIT ?"""
        return [
            (id, data)
            for id, text in self.file.rows(missing, limit)
            if (data := read_data(text)) is not None
        ]

    @property
    def folder(self) -> Path:
        """Where the taggers are."""
        return self.file.folder / "models"

    def model(self, number: int) -> Path:
        """The folder of a round's tagger."""
        return self.folder / f"{number:04d}"


def ladder(entropies: Iterable[float]) -> tuple[float, ...]:
    """Entropies in order, thinned out to a few thousand steps."""
    rising = sorted(entropies)
    if len(rising) <= _STEPS:
        return tuple(rising)
    return tuple(rising[round(i * (len(rising) - 1) / (_STEPS - 1))] for i in range(_STEPS))
