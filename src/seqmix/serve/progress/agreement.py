"""How well annotators agree where several answered the same sentence, and where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from seqmix.data.sentence import Sentence
from seqmix.loop.stopping import kappa
from seqmix.serve.progress.estimates import span_counts
from seqmix.serve.store.answers import answer_version
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.records import Answer, Ranges, rows
from seqmix.serve.store.schema import current
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.store.store import Store


@dataclass(frozen=True)
class Pair:
    """How well two annotators agree on the sentences that both answered."""

    a: str
    b: str
    n: int  # sentences
    f1: float  # on spans
    kappa: float  # Cohen's, on tokens
    tokens: int


@dataclass(frozen=True)
class Agreement:
    """All pairs and their mean: spans are pooled for F1, pairs weighted by tokens for kappa."""

    pairs: tuple[Pair, ...] = ()
    n: int = 0
    f1: float | None = None
    kappa: float | None = None


@dataclass(frozen=True)
class Conflict:
    """A sentence on which answers differ and that nobody has adjudicated yet."""

    sentence: Sentence
    answers: tuple[Answer, ...]
    version: int  # to send with the adjudication


def agreement(store: Store) -> Agreement:
    """Return how well annotators agreed, before adjudication."""
    by_pair: dict[tuple[str, str], list[tuple[int, Answer, Answer]]] = {}
    for sentence, answers in answered_twice(store):
        for a, b in combinations(sorted(answers, key=lambda answer: answer.annotator_id), 2):
            by_pair.setdefault((a.annotator, b.annotator), []).append((len(sentence), a, b))
    results = [_pair(a, b, both) for (a, b), both in sorted(by_pair.items())]
    if not results:
        return Agreement()
    pairs = tuple(pair for pair, _ in results)
    spans = np.sum([counts for _, counts in results], axis=0)
    weights = np.array([pair.tokens for pair in pairs], dtype=np.float64)
    mean = None
    if weights.sum():
        mean = float(np.average([pair.kappa for pair in pairs], weights=weights))
    return Agreement(pairs, sum(pair.n for pair in pairs), _f1(spans), mean)


def conflicts(store: Store, limit: int = 100) -> list[Conflict]:
    """Return the first sentences on which answers differ and that nobody has adjudicated."""
    differing: list[Conflict] = []
    for sentence, answers in answered_twice(store, undecided=True):
        if any(_differ(a, b, len(sentence)) for a, b in combinations(answers, 2)):
            version = answer_version(store, sentence.id)
            differing.append(Conflict(sentence, tuple(answers), version))
        if len(differing) == limit:
            break
    return differing


def answered_twice(
    store: Store, undecided: bool = False
) -> Iterator[tuple[Sentence, list[Answer]]]:
    """Yield the sentences with two labels or more, and these."""
    twice = (
        select(current.c.sentence_id)
        .where(current.c.kind == "label")
        .group_by(current.c.sentence_id)
        .having(func.count() > 1)
    )
    with store.reading() as conn:
        ids = list(conn.execute(twice.order_by(func.min(current.c.seq))).scalars())
    for sentence in read_sentences(store, ids):
        answers = current_answers(store, sentence.id, overridden=True)
        if undecided and any(answer.kind == "adjudicate" for answer in answers):
            continue
        labels = [answer for answer in answers if answer.kind == "label"]
        if len(labels) > 1:  # somebody may have undone theirs a moment ago
            yield sentence, labels


def _pair(
    a: str, b: str, both: Sequence[tuple[int, Answer, Answer]]
) -> tuple[Pair, NDArray[np.int64]]:
    spans = np.zeros(3, dtype=np.int64)
    tags: tuple[list[str], list[str]] = ([], [])
    for length, *answers in both:
        shared = common_part(answers[0].sure, answers[1].sure, length)
        spans += span_counts(answers[0].spans, answers[1].spans, shared)
        inside = [row is not None for row in rows((), shared, length)]
        for answer, seen in zip(answers, tags, strict=True):
            answered = rows(answer.spans, None, length)
            seen.extend(str(row) for row, kept in zip(answered, inside, strict=True) if kept)
    return Pair(a, b, len(both), _f1(spans), kappa(*tags), len(tags[0])), spans


def _f1(spans: NDArray[np.int64]) -> float:
    """Return F1 of one annotator against another; two who mark nothing agree."""
    return float(2 * spans[2] / (spans[0] + spans[1])) if spans[0] + spans[1] else 1.0


def _differ(a: Answer, b: Answer, length: int) -> bool:
    in_a, in_b, shared = span_counts(a.spans, b.spans, common_part(a.sure, b.sure, length))
    return not in_a == in_b == shared


def common_part(a: Ranges | None, b: Ranges | None, length: int) -> Ranges | None:
    """Return the part that both answers are about."""
    if a is None or b is None:
        return b if a is None else a
    shared = [(max(x[0], y[0]), min(x[1], y[1])) for x in a for y in b]
    return tuple(sorted((start, end) for start, end in shared if start < end))
