"""Learn from the unlabeled sentences too: teachers trained on the labels tag them, and a student learns from both.

A teacher's row goes into training as it is, a distribution over tags: what the teachers are unsure of, or do not agree on, teaches
little. Teachers differ by their seed only, so that their mean knows more than each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from seqmix.data.sentence import Row, Sentence
from seqmix.loop.learner import Fit
from seqmix.protocols import Tagger

_SURE, _TRIFLE = (
    0.98,
    0.02,
)  # a row above the one is written as a single tag; weights below the other are left out


@dataclass(frozen=True)
class SelfTraining:
    """How many teachers tag how many unlabeled sentences, and how the student sees them."""

    teachers: int = 3
    sentences: int = 2000  # drawn at random, so that sentences without entities are among them
    confidence: float = 0.0  # mean probability of the best tags that a sentence must reach
    repeat: int = 1  # how often the labeled sentences stand in the student's set
    steps: int | None = None  # the student's optimizer steps; None: as many as its set takes
    generations: int = 1  # the students of one generation teach the next


def self_trained(
    fit: Fit,
    unlabeled: Callable[[], Sequence[Sentence]],
    settings: SelfTraining,
) -> Fit:
    """Return a fit that trains a student after its teachers; `unlabeled` gives the pool of that moment."""

    def student(
        sentences: Sequence[Sentence],
        steps: int | None,
        rng: np.random.Generator,
        last: Tagger | None,
    ) -> Tagger:
        draws = rng.spawn(settings.teachers + 1)
        teachers = [fit(sentences, steps, own, last) for own in draws[1:]]
        labeled = {sentence.tokens for sentence in sentences}
        pool = [
            sentence for sentence in unlabeled() if len(sentence) and sentence.tokens not in labeled
        ]
        for generation in range(settings.generations, 0, -1):
            chosen = [
                pool[i] for i in np.sort(draws[0].permutation(len(pool))[: settings.sentences])
            ]
            learned = [*sentences] * settings.repeat
            learned += taught(teachers, chosen, settings.confidence)
            teachers = [
                fit(learned, settings.steps, own, last)
                for own in (draws[1:] if generation > 1 else [rng])
            ]
        return teachers[0]

    return student


def taught(
    teachers: Sequence[Tagger],
    sentences: Sequence[Sentence],
    confidence: float = 0.0,
) -> list[Sentence]:
    """The sentences with the teachers' mean tag distributions as their rows; those of too little confidence are left out."""
    tag_set = teachers[0].tag_set
    assert tag_set is not None  # they are trained
    found = []
    for sentence, *probs in zip(
        sentences, *(teacher.probabilities(sentences) for teacher in teachers), strict=True
    ):
        mean = np.mean(probs, axis=0)
        if mean.max(axis=1).mean() >= confidence:
            found.append(replace(sentence, tags=tuple(_row(row, tag_set.tags) for row in mean)))
    return found


def _row(weights: NDArray[np.float32], tags: Sequence[str]) -> Row:
    best = int(weights.argmax())
    if weights[best] >= _SURE:
        return tags[best]
    kept = np.where(weights >= _TRIFLE, weights, 0).astype(np.float64)
    kept /= kept.sum()
    row: Mapping[str, float] = {tags[i]: float(kept[i]) for i in np.flatnonzero(kept).tolist()}
    return row
