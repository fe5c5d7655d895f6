"""What taggers say of answers that they have not learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.protocols import Probs, Tagger
from seqmix.serve.review.evidence import Opinion

FOLDS = 5
Fit = Callable[[Sequence[Sentence], np.random.Generator], Tagger]


def opinions(
    fit: Fit, answers: Sequence[Sentence], rng: np.random.Generator, folds: int = FOLDS
) -> Iterator[tuple[Sentence, Opinion]]:
    """Yield each answer with what a tagger says of it that was trained on the other folds."""
    if len(answers) < folds:
        raise DataError(
            f"a model is asked about answers that it has not seen, which needs at least {folds}"
            f" of them; there are {len(answers)}"
        )
    parts = np.array_split(rng.permutation(len(answers)), folds)
    for at, (held_out, draw) in enumerate(zip(parts, rng.spawn(folds), strict=True)):
        learned = np.concatenate([part for other, part in enumerate(parts) if other != at])
        tagger = fit([answers[i] for i in learned], draw)
        yield from _opinions(tagger, [answers[i] for i in held_out])


def _opinions(tagger: Tagger, answers: Sequence[Sentence]) -> Iterator[tuple[Sentence, Opinion]]:
    tag_set = tagger.tag_set
    assert tag_set is not None  # it is trained
    index = {tag: at for at, tag in enumerate(tag_set.tags)}
    bare = [answer.unlabeled() for answer in answers]
    predicted, rows = tagger.predict(bare), tagger.probabilities(bare)
    for answer, best, probs in zip(answers, predicted, rows, strict=True):
        tags = tuple(str(tag) for tag in best.tags)
        hard = answer.hardened().tags
        answered = [None if tag is None else index.get(str(tag), -1) for tag in hard]
        yield answer, Opinion(tags, _at(probs, [index[tag] for tag in tags]), _at(probs, answered))


def _at(probs: Probs, ids: Sequence[int | None]) -> tuple[float, ...]:
    """Return the probability of a tag for each token: 1 without one, 0 for an unknown one (-1)."""
    return tuple(
        1.0 if id is None else 0.0 if id < 0 else float(row[id])
        for row, id in zip(probs, ids, strict=True)
    )
