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
from seqmix.settings import Natural, settings

_SURE = 0.98  # a row with a weight above this is written as a single tag
_TRIFLE = 0.02  # weights below this are left out

# What else the student learns, from its teachers and the sentences they learned from.
MoreLessons = Callable[
    [Sequence[Tagger], Sequence[Sentence], np.random.Generator], Sequence[Sentence]
]


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
    more: MoreLessons | None = None,
) -> Fit:
    """Return a fit that trains a student after its teachers.

    `unlabeled` gives the pool of that moment, and `more` what the student learns beside it.
    """

    def student(
        sentences: Sequence[Sentence],
        steps: int | None,
        rng: np.random.Generator,
        last: Tagger | None,
    ) -> Tagger:
        lessons = prepare_lessons(fit, unlabeled(), how, sentences, steps, rng, last, more=more)
        return student_of(fit, lessons, how)(sentences, steps, rng, last)

    return student


def prepare_lessons(
    fit: Fit,
    unlabeled: Sequence[Sentence],
    how: SelfTraining,
    sentences: Sequence[Sentence],
    steps: int | None,
    rng: np.random.Generator,
    last: Tagger | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    more: MoreLessons | None = None,
) -> list[Sentence]:
    """Train teachers, and return unlabeled sentences as the last generation of them tags them.

    `progress` is called with the sentences tagged so far, and with all to tag.
    """
    draws = rng.spawn(how.teachers + 1)
    teachers = [fit(sentences, steps, draw, last) for draw in draws[1:]]
    labeled = {sentence.tokens for sentence in sentences}
    pool = [sentence for sentence in unlabeled if len(sentence) and sentence.tokens not in labeled]

    def lessons() -> list[Sentence]:
        chosen = [pool[i] for i in np.sort(draws[0].permutation(len(pool))[: how.sentences])]
        tagged = taught(teachers, chosen, how.confidence, progress)
        # subtle: a generator of its own, so that these lessons change nothing else
        return tagged + list(more(teachers, sentences, draws[0].spawn(1)[0]) if more else ())

    for _ in range(how.generations - 1):
        student = student_of(fit, lessons(), how)
        teachers = [student(sentences, steps, draw, last) for draw in draws[1:]]
    return lessons()


def student_of(fit: Fit, lessons: Sequence[Sentence], how: SelfTraining) -> Fit:
    """Return a fit that learns from lessons too; those that are labeled by now are left out."""

    def student(
        sentences: Sequence[Sentence],
        steps: int | None,
        rng: np.random.Generator,
        last: Tagger | None,
    ) -> Tagger:
        labeled = {sentence.tokens for sentence in sentences}
        learned = [*sentences] * how.repeat
        learned += [lesson for lesson in lessons if lesson.tokens not in labeled]
        return fit(learned, how.steps, rng, last)

    return student


def taught(
    teachers: Sequence[Tagger],
    sentences: Sequence[Sentence],
    confidence: float = 0.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Sentence]:
    """Return the sentences with the teachers' mean distributions as rows.

    Those of too little confidence are left out.
    """
    tag_set = teachers[0].tag_set
    assert tag_set is not None  # they are trained
    tagged = []
    progress(0, len(sentences))
    by_teacher = (teacher.probabilities(sentences) for teacher in teachers)
    for done, (sentence, *probs) in enumerate(zip(sentences, *by_teacher, strict=True), 1):
        mean = np.mean(probs, axis=0)
        if mean.max(axis=1).mean() >= confidence:
            tagged.append(replace(sentence, tags=tuple(row_of(row, tag_set.tags) for row in mean)))
        progress(done, len(sentences))
    return tagged


def row_of(weights: NDArray[np.float32], tags: Sequence[str]) -> Row:
    """Return a distribution over tags as a tag row, without trifles."""
    best = int(weights.argmax())
    if weights[best] >= _SURE:
        return tags[best]
    kept = np.where(weights >= _TRIFLE, weights, 0).astype(np.float64)
    kept /= kept.sum()
    row: Mapping[str, float] = {tags[i]: float(kept[i]) for i in np.flatnonzero(kept).tolist()}
    return row
