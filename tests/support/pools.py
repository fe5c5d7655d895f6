"""Sentences by the thousand, and a tagger that is nothing but arithmetic; apart from the tests, since workers import this."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.query.uncertainty import least_confidence_sum, margin, token_entropy
from seqmix.scale.ranking import Part, Scorer, score_unit
from seqmix.scale.shards import Unit

SCORES = {"entropy": token_entropy, "least": least_confidence_sum, "margin": margin}
_WORDS = (
    "the",
    "Lena",
    "Oslo",
    "Rome",
    "Acme",
    "lives",
    "works",
    "visited",
    "left",
    "at",
    "Ada",
    "Bo",
    "Mary",
    "Smith",
    ".",
    ",",
)


def many(n: int, seed: int = 0) -> Iterator[Sentence]:
    """n sentences of 1 to 12 tokens, nearly all different."""
    rng = np.random.default_rng(seed)
    for number in range(n):
        picked = rng.integers(len(_WORDS), size=int(rng.integers(1, 13)))
        yield Sentence(f"s{number}", (*(_WORDS[i] for i in picked), f"n{number}"))


@dataclass
class Arithmetic:
    """A tagger whose probabilities follow from the letters; it costs nothing and is the same everywhere."""

    tag_set: TagSet | None = field(default_factory=lambda: TagSet(("O", "B-X", "I-X")))

    def probabilities(self, sentences: Iterable[Sentence]) -> Iterator[Any]:
        for sentence in sentences:
            odds = np.array(
                [[1 + sum(map(ord, t)) % 7, 1 + len(t) % 5, 1] for t in sentence.tokens],
                dtype=np.float32,
            )
            yield odds / odds.sum(axis=1, keepdims=True)

    def unsure(self, sentences: Iterable[Sentence], measure: str) -> Iterator[float]:
        return map(SCORES[measure], self.probabilities(sentences))


def arithmetic() -> list[Any]:
    return [Arithmetic()]


def dying(note: Path, at: str, scorer: Scorer, unit: Unit, tell: Any) -> Part:
    """Scores units as any worker does, but the first to be given the unit `at` is killed while it has it."""
    if unit.key == at and not note.exists():
        note.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return score_unit(scorer, unit, tell)
