"""Sentences by the thousand, and a tagger that is arithmetic alone; workers import this module."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ModelError
from seqmix.scale.ranking import Scorer, UnitResult, score_unit
from seqmix.scale.shards import Unit
from seqmix.testing import WordTagger

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


class Arithmetic(WordTagger):
    """Probabilities that follow from the letters: no training, and the same everywhere."""

    def odds(self, word: str) -> list[float]:
        return [1 + sum(map(ord, word)) % 7, 1 + len(word) % 5, 1]


def arithmetic() -> list[Any]:
    return [Arithmetic(TagSet(("O", "B-X", "I-X")))]


def broken() -> list[Any]:
    raise ModelError("nothing is not a tagger")


def dying(note: Path, at: str, scorer: Scorer, unit: Unit, tell: Any) -> UnitResult:
    """Scores units as any worker does, but the first that is given the unit `at` dies with it."""
    if unit.key == at and not note.exists():
        note.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return score_unit(scorer, unit, tell)
