"""Learn from unlabeled sentences too: teachers tag them, and a student learns from both.

A teacher's row is a distribution over tags, so what the teachers are unsure of, or do not agree on,
teaches little. Teachers differ by their seed only, and their mean knows more than each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seqmix.data.sentence import Row, Sentence
from seqmix.loop.learner import Fit
from seqmix.protocols import Tagger
from seqmix.settings import settings

_SURE = 0.98  # a row with a weight above this is written as a single tag
_TRIFLE = 0.02  # weights below this are left out

Natural = Annotated[int, Field(ge=0)]


@settings
class SelfTraining:
    """A student that learns from unlabeled sentences as its teachers tag them."""

    teachers: Natural = 0
    """Taggers that differ by their seed; 0 is off."""
    sentences: Annotated[int, Field(ge=1)] = 2000
    """Unlabeled sentences, drawn at random, so that some have no entity."""
    confidence: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Least mean probability of the best tags of a sentence."""
    repeat: Annotated[int, Field(ge=1)] = 1
    """How often each labeled sentence is in the student's set."""
    steps: Annotated[int, Field(ge=1)] | None = None
    """The student's optimizer steps; by default as many as its set takes."""
    generations: Annotated[int, Field(ge=1)] = 1
    """Generations of students, each of which teaches the next."""


def self_trained(
    fit: Fit,
    unlabeled: Callable[[], Sequence[Sentence]],
    how: SelfTraining,
) -> Fit:
    """Return a fit that trains a student after its teachers.

    `unlabeled` gives the pool of that moment.
    """

    def student(
        sentences: Sequence[Sentence],
        steps: int | None,
        rng: np.random.Generator,
        last: Tagger | None,
    ) -> Tagger:
        draws = rng.spawn(how.teachers + 1)
        teachers = [fit(sentences, steps, draw, last) for draw in draws[1:]]
        labeled = {sentence.tokens for sentence in sentences}
        pool = [
            sentence for sentence in unlabeled() if len(sentence) and sentence.tokens not in labeled
        ]
        for generation in range(how.generations, 0, -1):
            chosen = [pool[i] for i in np.sort(draws[0].permutation(len(pool))[: how.sentences])]
            learned = [*sentences] * how.repeat
            learned += taught(teachers, chosen, how.confidence)
            teachers = [
                fit(learned, how.steps, draw, last)
                for draw in (draws[1:] if generation > 1 else [rng])
            ]
        return teachers[0]

    return student


def taught(
    teachers: Sequence[Tagger],
    sentences: Sequence[Sentence],
    confidence: float = 0.0,
) -> list[Sentence]:
    """Return the sentences with the teachers' mean distributions as rows.

    Those of too little confidence are left out.
    """
    tag_set = teachers[0].tag_set
    assert tag_set is not None  # they are trained
    tagged = []
    for sentence, *probs in zip(
        sentences, *(teacher.probabilities(sentences) for teacher in teachers), strict=True
    ):
        mean = np.mean(probs, axis=0)
        if mean.max(axis=1).mean() >= confidence:
            tagged.append(replace(sentence, tags=tuple(_row(row, tag_set.tags) for row in mean)))
    return tagged


def _row(weights: NDArray[np.float32], tags: Sequence[str]) -> Row:
    best = int(weights.argmax())
    if weights[best] >= _SURE:
        return tags[best]
    kept = np.where(weights >= _TRIFLE, weights, 0).astype(np.float64)
    kept /= kept.sum()
    row: Mapping[str, float] = {tags[i]: float(kept[i]) for i in np.flatnonzero(kept).tolist()}
    return row
