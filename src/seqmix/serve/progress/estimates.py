"""The F1 of the model on random sentences, its curve, and a forecast.

It is measured on the audit stream alone: random sentences, answered without a suggestion and not
trained on, so that it holds for all of the text within its interval. On the actively chosen
sentences it would not, since they were chosen for being hard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from seqmix.serve.progress.forecast import LEAST_ANSWERS, LEAST_MODELS, AuditForecast, forecast
from seqmix.serve.progress.intervals import F1, LEAST, intervals
from seqmix.serve.progress.throttled import Throttled
from seqmix.serve.store.current import gold_answers
from seqmix.serve.store.records import Answer, Mark, Notes, Ranges, loads
from seqmix.serve.store.schema import generations, queue
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory

_POINTS = 40  # of the curve; a page cannot show more


@dataclass(frozen=True)
class Point:
    """A generation on the curve."""

    generation: int
    labeled: int
    f1: float
    low: float
    high: float


@dataclass(frozen=True)
class Progress:
    """What the page shows beside the text, and what is lacking for what it cannot show yet."""

    audit: F1 | None = None
    curve: tuple[Point, ...] = ()
    forecast: AuditForecast | None = None
    audit_lacks: int = LEAST  # audit answers
    forecast_lacks: int = LEAST_ANSWERS  # audit answers
    models_lack: int = LEAST_MODELS  # for a forecast

    @property
    def lacking(self) -> dict[str, int]:
        """What is lacking, for JSON: answers for an F1, answers and models for a forecast."""
        return {
            "audit": self.audit_lacks,
            "forecast": self.forecast_lacks,
            "models": self.models_lack,
        }


def span_counts(
    gold: Iterable[Mark], predicted: Iterable[Mark], sure: Ranges | None = None
) -> tuple[int, int, int]:
    """Return how many spans are gold, predicted and both, of those inside the sure part."""
    a, b = (
        {tuple(mark) for mark in marks if sure is None or inside(mark, sure)}
        for marks in (gold, predicted)
    )
    return len(a), len(b), len(a & b)


def inside(mark: Mark, sure: Ranges) -> bool:
    """Whether a mark lies in a part."""
    return any(start <= mark.start and mark.end <= end for start, end in sure)


class Estimates:
    """The progress of a project, computed when something changed, at most every few seconds."""

    def __init__(self, store: Store, every: float = 5.0) -> None:
        self._store, self._recent = store, Throttled(self._refreshed, every)
        self._state: tuple[int, ...] | None = None
        self._last = Progress()
        # by generation, sentence and event, so that nothing is counted twice
        self._counts: dict[tuple[int, str, int], tuple[int, int, int]] = {}
        self._tag_change = 0  # the last change of the tags that the counts have read
        self._predicted: dict[int, Mapping[str, tuple[Mark, ...]]] = {}

    def progress(self) -> Progress:
        """Return the audit F1 of the newest model, the curve over all models, and the forecast."""
        return self._recent()

    def _refreshed(self) -> Progress:
        state = self._read_state()
        if state != self._state:
            self._last, self._state = self._compute(), state
        return self._last

    def _read_state(self) -> tuple[int, ...]:
        """Return numbers that change whenever an audit answer, a generation or a tag does."""
        audit = select(func.coalesce(func.sum(queue.c.gold), 0), func.count(queue.c.gold)).where(
            queue.c.stream == "audit"
        )
        with self._store.reading() as conn:
            newest = conn.execute(select(func.max(generations.c.number))).scalar() or 0
            tags = self._store.tag_history().newest
            return (*(int(n) for n in conn.execute(audit).one()), newest, tags)

    def _compute(self) -> Progress:
        if (newest := self._store.tag_history().newest) != self._tag_change:
            self._tag_change, self._counts, self._predicted = newest, {}, {}
        models = self._read_models()
        answers = gold_answers(self._store, "audit")
        rising = _rising([labeled for _, labeled in models])
        progress = Progress(models_lack=max(0, LEAST_MODELS - len(rising)))
        if not models or not answers:
            return progress
        counts = np.array(
            [[self._count(number, answer) for number, _ in models] for answer in answers],
            dtype=np.float64,
        ).transpose(0, 2, 1)  # [answers, 3, models]
        with_spans = int((counts[:, :2, -1].sum(axis=1) > 0).sum())
        progress = replace(
            progress,
            audit_lacks=max(0, LEAST - with_spans),
            forecast_lacks=max(0, LEAST_ANSWERS - with_spans),
        )
        figures = intervals(counts)
        if (last := figures[-1]) is None:
            return progress
        curve = tuple(
            Point(*model, f.f1, f.low, f.high)
            for model, f in zip(models, figures, strict=True)
            if f is not None
        )
        newest = sum(answer.sentence_id in self._predicted[models[-1][0]] for answer in answers)
        ahead = None
        if not progress.forecast_lacks and not progress.models_lack:
            labeled: NDArray[np.float64] = np.array([models[i][1] for i in rising], np.float64)
            ahead = forecast(labeled, counts[:, :, rising])
        return replace(progress, audit=replace(last, n=newest), curve=curve, forecast=ahead)

    def _read_models(self) -> list[tuple[int, int]]:
        """Return number and labels of the models on the curve; read each audit once."""
        with self._store.reading() as conn:
            audited = (
                select(generations.c.number, generations.c.labeled)
                .where(generations.c.audit != "[]")
                .order_by(generations.c.number)
            )
            trained = [(row.number, row.labeled) for row in conn.execute(audited)]
            # of models with the same labels, the last: it is of the latest stage
            models = _thinned([list(same)[-1] for _, same in groupby(trained, itemgetter(1))])
            predicted = {n: self._predicted[n] for n, _ in models if n in self._predicted}
            for number in (number for number, _ in models if number not in predicted):
                predicted[number] = predicted_audit(conn, number, self._store.tag_history())
        self._predicted = predicted
        return models

    def _count(self, generation: int, answer: Answer) -> tuple[int, int, int]:
        """Compare an answer with a model; a sentence the model did not predict weighs nothing."""
        key = (generation, answer.sentence_id, answer.seq)
        if key not in self._counts:
            marks = self._predicted[generation].get(answer.sentence_id)
            seen = [mark for mark in marks or () if mark.tag not in answer.unasked]
            self._counts[key] = (
                (0, 0, 0) if marks is None else span_counts(answer.spans, seen, answer.sure)
            )
        return self._counts[key]


def predicted_audit(
    conn: Connection, number: int, tags: TagHistory
) -> Mapping[str, tuple[Mark, ...]]:
    """Return what a model predicted on the audit sentences, with the tags of now."""
    audit = select(generations.c.audit, generations.c.dev)
    row = conn.execute(audit.where(generations.c.number == number)).one()
    place = tags.at_change(Notes.from_json(loads(row.dev) or {}).tag_change or 0)
    return {
        answer["id"]: tags.marks((Mark(*mark) for mark in answer["marks"]), place)[0]
        for answer in loads(row.audit)
    }


def _rising(labeled: Sequence[int]) -> list[int]:
    """Return the places of the models that had more labels than all before: [5, 5, 9] -> [0, 2]."""
    return [at for at, n in enumerate(labeled) if n > max((0, *labeled[:at]))]


def _thinned(models: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return at most `_POINTS` models, evenly, the first and the last among them."""
    if len(models) <= _POINTS:
        return models
    return [models[i] for i in sorted({round(i) for i in np.linspace(0, len(models) - 1, _POINTS)})]
