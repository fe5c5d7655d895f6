"""What the answers say about the model and about each other.

The F1 is measured on the audit stream alone: random sentences, answered without seeing a suggestion and not trained on, so that it
holds for all of the text within its interval. On the actively chosen sentences it would not: these were chosen for being hard.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from seqmix.data.sentence import Sentence
from seqmix.loop.stopping import kappa
from seqmix.serve.forecast import LEAST_ANSWERS, LEAST_MODELS, Outlook, outlook
from seqmix.serve.intervals import F1, LEAST, intervals
from seqmix.serve.store.answers import answer_version
from seqmix.serve.store.current import current_answers, gold_answers
from seqmix.serve.store.records import Answer, Mark, Ranges, loads, rows
from seqmix.serve.store.schema import current, generations, queue
from seqmix.serve.store.sentences import OPEN_TAGS, read_sentences
from seqmix.serve.store.store import Store

_POINTS = 40  # of the curve; more cannot be told apart on a page


@dataclass(frozen=True)
class Point:
    """One generation on the curve."""

    generation: int
    labeled: int
    f1: float
    low: float
    high: float


@dataclass(frozen=True)
class Progress:
    """What the page shows beside the text; None or empty as long as nothing can be said, and what is lacking until then."""

    audit: F1 | None = None
    curve: tuple[Point, ...] = ()
    forecast: Outlook | None = None
    audit_lacks: int = LEAST  # audit answers
    forecast_lacks: int = LEAST_ANSWERS  # audit answers
    models_lack: int = LEAST_MODELS  # for a forecast

    @property
    def lacking(self) -> dict[str, int]:
        """What there must be more of, for JSON: answers for an F1, answers and models for a forecast."""
        return {
            "audit": self.audit_lacks,
            "forecast": self.forecast_lacks,
            "models": self.models_lack,
        }


@dataclass(frozen=True)
class Pair:
    """How far two annotators agree on the sentences both answered."""

    a: str
    b: str
    n: int  # sentences
    f1: float  # on spans
    kappa: float  # Cohen's, on tokens
    tokens: int


@dataclass(frozen=True)
class Agreement:
    """All pairs, and their mean: spans pooled for F1, pairs weighted by tokens for kappa."""

    pairs: tuple[Pair, ...] = ()
    n: int = 0
    f1: float | None = None
    kappa: float | None = None


@dataclass(frozen=True)
class Conflict:
    """A sentence on which answers differ and nobody has decided yet."""

    sentence: Sentence
    answers: tuple[Answer, ...]
    version: int  # to send with the adjudication


def span_counts(
    gold: Iterable[Mark], found: Iterable[Mark], sure: Ranges | None = None
) -> tuple[int, int, int]:
    """Spans in the gold, found, and right; where the gold speaks of a part only, those that lie in the part."""
    a, b = (
        {tuple(mark) for mark in marks if sure is None or _inside(mark, sure)}
        for marks in (gold, found)
    )
    return len(a), len(b), len(a & b)


class Estimates:
    """Progress of a project, computed anew only when there is something new, and at most once in `every` seconds."""

    def __init__(self, store: Store, every: float = 5.0) -> None:
        self._store, self._every, self._lock = store, every, threading.Lock()
        self._key: tuple[int, ...] | None = None
        self._at, self._last = -every, Progress()
        self._counted: dict[
            tuple[int, str, int], tuple[int, int, int]
        ] = {}  # by generation, sentence and event: never counted twice
        self._open: Mapping[
            str, int
        ] = {}  # by tag that was added later, the last event that says nothing of it
        self._predicted: dict[int, Mapping[str, tuple[Mark, ...]]] = {}

    def progress(self) -> Progress:
        """The audit F1 of the newest model, the curve over all of them, and what the next labels should bring."""
        with self._lock:
            if time.monotonic() - self._at < self._every:
                return self._last
            key = self._newest()
            if key != self._key:
                self._last, self._key = self._compute(), key
            self._at = time.monotonic()
            return self._last

    def _newest(self) -> tuple[int, ...]:
        """Changes whenever an audit answer or a generation does."""
        with self._store.reading() as conn:
            audit = select(
                func.coalesce(func.sum(queue.c.gold), 0), func.count(queue.c.gold)
            ).where(queue.c.stream == "audit")
            newest = conn.execute(select(func.max(generations.c.number))).scalar() or 0
            tags = (self._store.read_note(OPEN_TAGS) or {}).values()
            return (*(int(n) for n in conn.execute(audit).one()), newest, *tags)

    def _compute(self) -> Progress:
        models = self._generations()
        if (tags := self._store.read_note(OPEN_TAGS) or {}) != self._open:
            self._open, self._counted = tags, {}
        answered = gold_answers(self._store, "audit")
        rising = [
            at
            for at, (_, labeled) in enumerate(models)
            if labeled > max((0, *(before for _, before in models[:at])))
        ]
        lacking = Progress(models_lack=max(0, LEAST_MODELS - len(rising)))
        if not models or not answered:
            return lacking
        counts = np.array(
            [[self._count(number, answer) for number, _ in models] for answer in answered],
            dtype=np.float64,
        )
        counts = counts.transpose(0, 2, 1)  # [answers, 3, models]
        figures = intervals(counts)
        known = int((counts[:, :2, -1].sum(axis=1) > 0).sum())
        lacking = replace(
            lacking, audit_lacks=max(0, LEAST - known), forecast_lacks=max(0, LEAST_ANSWERS - known)
        )
        if (last := figures[-1]) is None:
            return lacking
        curve = tuple(
            Point(*one, f.f1, f.low, f.high)
            for one, f in zip(models, figures, strict=True)
            if f is not None
        )
        newest = sum(answer.sentence_id in self._predicted[models[-1][0]] for answer in answered)
        enough = not lacking.forecast_lacks and not lacking.models_lack
        ahead = (
            outlook(
                np.array([models[at][1] for at in rising], dtype=np.float64), counts[:, :, rising]
            )
            if enough
            else None
        )
        return replace(lacking, audit=replace(last, n=newest), curve=curve, forecast=ahead)

    def _generations(self) -> list[tuple[int, int]]:
        """Number and labeled sentences of the generations on the curve; their predictions are read once."""
        with self._store.reading() as conn:
            said = (
                select(generations.c.number, generations.c.labeled)
                .where(generations.c.audit != "[]")
                .order_by(generations.c.number)
            )
            made = _thinned([(row.number, row.labeled) for row in conn.execute(said)])
            kept = {
                number: self._predicted[number] for number, _ in made if number in self._predicted
            }
            for number in (number for number, _ in made if number not in kept):
                text = conn.execute(
                    select(generations.c.audit).where(generations.c.number == number)
                ).scalar_one()
                kept[number] = {
                    one["id"]: tuple(Mark(*mark) for mark in one["marks"]) for one in loads(text)
                }
        self._predicted = kept
        return made

    def _count(self, generation: int, answer: Answer) -> tuple[int, int, int]:
        """Spans of one answer against one model; a sentence the model was not asked about weighs nothing."""
        key = (generation, answer.sentence_id, answer.seq)
        if key not in self._counted:
            found = self._predicted[generation].get(answer.sentence_id)
            known = [mark for mark in found or () if answer.seq > self._open.get(mark.tag, -1)]
            self._counted[key] = (
                (0, 0, 0) if found is None else span_counts(answer.spans, known, answer.sure)
            )
        return self._counted[key]


def agreement(store: Store) -> Agreement:
    """How far annotators agree where two or more answered the same sentence, before anybody decided."""
    by_pair: dict[tuple[str, str], list[tuple[int, Answer, Answer]]] = {}
    for sentence, said in _twice(store):
        for one, other in combinations(sorted(said, key=lambda answer: answer.annotator_id), 2):
            by_pair.setdefault((one.annotator, other.annotator), []).append(
                (len(sentence), one, other)
            )
    found = [_pair(a, b, both) for (a, b), both in sorted(by_pair.items())]
    if not found:
        return Agreement()
    pairs = tuple(pair for pair, _ in found)
    spans = np.sum([counts for _, counts in found], axis=0)
    weights = np.array([pair.tokens for pair in pairs], dtype=np.float64)
    mean = (
        float(np.average([pair.kappa for pair in pairs], weights=weights))
        if weights.sum()
        else None
    )
    return Agreement(pairs, sum(pair.n for pair in pairs), _agreed(spans), mean)


def conflicts(store: Store, limit: int = 100) -> list[Conflict]:
    """The first sentences on which answers differ and that nobody has adjudicated."""
    found: list[Conflict] = []
    for sentence, said in _twice(store, undecided=True):
        if any(_differ(one, other, len(sentence)) for one, other in combinations(said, 2)):
            found.append(Conflict(sentence, tuple(said), answer_version(store, sentence.id)))
        if len(found) == limit:
            break
    return found


def _twice(store: Store, undecided: bool = False) -> Iterator[tuple[Sentence, list[Answer]]]:
    """Sentences with two labels or more, and these."""
    twice = (
        select(current.c.sentence_id)
        .where(current.c.kind == "label")
        .group_by(current.c.sentence_id)
        .having(func.count() > 1)
    )
    with store.reading() as conn:
        ids = list(conn.execute(twice.order_by(func.min(current.c.seq))).scalars())
    for sentence in read_sentences(store, ids):
        said = current_answers(store, sentence.id, overridden=True)
        if undecided and any(answer.kind == "adjudicate" for answer in said):
            continue
        labels = [answer for answer in said if answer.kind == "label"]
        if len(labels) > 1:  # somebody may have undone theirs a moment ago
            yield sentence, labels


def _pair(
    a: str, b: str, both: Sequence[tuple[int, Answer, Answer]]
) -> tuple[Pair, NDArray[np.int64]]:
    spans = np.zeros(3, dtype=np.int64)
    tags_a: list[str] = []
    tags_b: list[str] = []
    for length, one, other in both:
        shared = _common(one.sure, other.sure, length)
        spans += span_counts(one.spans, other.spans, shared)
        known = [row is not None for row in rows((), shared, length)]
        for answer, tags in ((one, tags_a), (other, tags_b)):
            own = rows(answer.spans, None, length)
            tags.extend(str(row) for row, shown in zip(own, known, strict=True) if shown)
    return Pair(a, b, len(both), _agreed(spans), kappa(tags_a, tags_b), len(tags_a)), spans


def _agreed(spans: NDArray[np.int64]) -> float:
    """F1 of one annotator against the other; two who find nothing agree."""
    return float(2 * spans[2] / (spans[0] + spans[1])) if spans[0] + spans[1] else 1.0


def _differ(one: Answer, other: Answer, length: int) -> bool:
    gold, found, right = span_counts(one.spans, other.spans, _common(one.sure, other.sure, length))
    return not gold == found == right


def _common(a: Ranges | None, b: Ranges | None, length: int) -> Ranges | None:
    """The part both speak of."""
    if a is None or b is None:
        return b if a is None else a
    shared = [(max(x[0], y[0]), min(x[1], y[1])) for x in a for y in b]
    return tuple(sorted((start, end) for start, end in shared if start < end))


def _inside(mark: Mark, sure: Ranges) -> bool:
    return any(start <= mark.start and mark.end <= end for start, end in sure)


def _thinned(made: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """At most so many generations, evenly, the first and the last among them."""
    if len(made) <= _POINTS:
        return made
    return [made[i] for i in sorted({round(i) for i in np.linspace(0, len(made) - 1, _POINTS)})]
