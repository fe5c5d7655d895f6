"""Mixed sentences as lessons: generated from what is labeled, judged and tagged by teachers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from seqmix.data.augmented import Augmented
from seqmix.data.sentence import Sentence
from seqmix.loop.selftraining import row_of
from seqmix.protocols import Augmenter, Probs, Tagger

Labels = Literal["mixed", "teachers"]
Band = tuple[float, float]


def mixed_lessons(
    augmenter: Augmenter,
    n: int,
    teachers: Sequence[Tagger],
    sentences: Sequence[Sentence],
    rng: np.random.Generator,
    labels: Labels = "mixed",
    band: Band = (0.0, 1.0),
    weight: float = 1.0,
) -> list[Sentence]:
    """Return up to n mixed sentences, with mixed tags or those of the teachers.

    Of those that are generated, only the ones are kept with whose mixed tags the teachers agree
    neither less nor more than a band of quantiles says: what they know already teaches little.
    """
    low, high = band
    generated = list(augmenter.augment(sentences, round(n / (high - low)), rng))
    views = mean_probabilities(teachers, [new.sentence for new in generated])
    tag_set = teachers[0].tag_set
    assert tag_set is not None  # they are trained
    tags = tag_set.tags
    agreed = [agreement(new, view, tags) for new, view in zip(generated, views, strict=True)]
    order = np.argsort(agreed, kind="stable")
    kept = sorted(order[round(low * len(order)) : round(high * len(order))].tolist())
    lessons = []
    for i in kept:
        sentence = replace(generated[i].sentence, weight=weight)
        if labels == "teachers":
            sentence = replace(sentence, tags=tuple(row_of(row, tags) for row in views[i]))
        lessons.append(sentence)
    return lessons


def mean_probabilities(teachers: Sequence[Tagger], sentences: Sequence[Sentence]) -> list[Probs]:
    """Return the teachers' mean distribution over tags for each token of each sentence."""
    by_teacher = (teacher.probabilities(sentences) for teacher in teachers)
    return [np.mean(views, axis=0) for views in zip(*by_teacher, strict=True)]


def agreement(new: Augmented, view: Probs, tags: Sequence[str]) -> float:
    """Return the mean log-probability that teachers give the tags of the new tokens."""
    start, end = new.lineage.windows[new.lineage.into]
    logs = []
    for row, probs in zip(new.sentence.tags[start:end], view[start:end], strict=True):
        shares = row if isinstance(row, Mapping) else {row: 1.0}
        agreed = sum(shares.get(tag, 0.0) * float(p) for tag, p in zip(tags, probs, strict=True))
        logs.append(np.log(max(agreed, 1e-9)))
    return float(np.mean(logs)) if logs else 0.0
