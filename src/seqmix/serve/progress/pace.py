"""How long answers take: in all, by tag, by stream, by source of suggestions, by annotator.

Counted are first answers that a person gave to one sentence; corrections and answers in bulk are
not, and the page has cut pauses out of the seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from sqlalchemy import select

from seqmix.query.answer_time import PUBLISHED, AnswerTime, TimedAnswer, fit_answer_time
from seqmix.serve.progress.throttled import Throttled
from seqmix.serve.store.events import parse_marks
from seqmix.serve.store.records import loads
from seqmix.serve.store.schema import events, sentences
from seqmix.serve.store.store import Store

_KEPT = 2000  # answers; a pace of long ago says little
_RECENT = 200  # answers from which the next ones are foreseen
_TIMED = (
    select(
        events.c.seq,
        events.c.annotator_id,
        events.c.spans,
        events.c.seconds,
        events.c.stream,
        events.c.shown,
        sentences.c.length,
    )
    .join_from(events, sentences)
    .where(
        events.c.kind == "label",
        events.c.seconds > 0,
        events.c.batch.is_(None),
        events.c.old.is_(None),
    )
    .order_by(events.c.seq.desc())
    .limit(_KEPT)
)


@dataclass(frozen=True)
class AnswerRow:
    """A timed answer: whose it is, why it was asked for, and what made suggestions."""

    annotator_id: int
    stream: str
    sources: tuple[str, ...]  # that offered something
    answer: TimedAnswer


@dataclass(frozen=True)
class Times:
    """How long answers took, and the model of that."""

    model: AnswerTime
    rows: tuple[AnswerRow, ...] = ()

    @property
    def next_seconds(self) -> float | None:
        """What an answer like the latest should take; None before there are any."""
        recent = [self.model.of(row.answer) for row in self.rows[-_RECENT:]]
        return fmean(recent) if recent else None

    def to_json(self, annotator_id: int | None = None) -> dict[str, Any] | None:
        """Return the figures, with those of one annotator as `mine`; None without answers."""
        if not self.rows:
            return None
        streams = {row.stream for row in self.rows}
        sources = {name for row in self.rows for name in row.sources}
        mine = [row for row in self.rows if row.annotator_id == annotator_id]
        return {
            **self._of(self.rows),
            "mine": self._of(mine) if mine else None,
            "model": {
                "sentence": round(self.model.base, 2),
                "token": round(self.model.per_token, 3),
                "span": round(self.model.per_span, 2),
            },
            "by_tag": [
                {"tag": tag, "spans": self._spans(tag), "seconds": round(seconds, 1)}
                for tag, seconds in self.model.by_tag.items()
            ],
            "by_stream": [
                {"stream": stream, **self._of(row for row in self.rows if row.stream == stream)}
                for stream in sorted(streams)
            ],
            "by_source": [
                {"source": name, **self._of(row for row in self.rows if name in row.sources)}
                for name in sorted(sources)
            ],
        }

    def _of(self, rows: Iterable[AnswerRow]) -> dict[str, Any]:
        """Return how many answers these are, their median, and their time to that of all."""
        answers = [row.answer for row in rows]
        expected = sum(map(self.model.of, answers))
        taken = sum(answer.seconds for answer in answers)
        return {
            "answers": len(answers),
            "seconds": round(median(answer.seconds for answer in answers), 1),
            "ratio": round(taken / expected, 2) if expected else None,
        }

    def _spans(self, tag: str) -> int:
        return sum(row.answer.spans.get(tag, 0) for row in self.rows)


class Pace:
    """The times of a project, computed at most every few seconds."""

    def __init__(self, store: Store, every: float = 5.0) -> None:
        self._store, self._recent, self._last = store, Throttled(self._fit, every), Times(PUBLISHED)
        self._seq, self._change = 0, 0
        self._rows: deque[AnswerRow] = deque(maxlen=_KEPT)

    def times(self) -> Times:
        """Return how long answers took so far."""
        return self._recent()

    def _fit(self) -> Times:
        if self._read():
            rows = tuple(self._rows)
            self._last = Times(fit_answer_time([row.answer for row in rows]), rows)
        return self._last

    def _read(self) -> bool:
        """Read the answers since the last time, all again if the tags changed; return if any."""
        history = self._store.tag_history()
        if history.newest != self._change:
            self._rows.clear()
            self._seq, self._change = 0, history.newest
        with self._store.reading() as conn:
            new = conn.execute(_TIMED.where(events.c.seq > self._seq)).all()
        for row in reversed(new):
            marks, _ = history.marks(parse_marks(row.spans), history.at_event(row.seq))
            spans: dict[str, int] = {}
            for mark in marks:
                spans[mark.tag] = spans.get(mark.tag, 0) + 1
            shown: Mapping[str, list[Any]] = loads(row.shown) or {}
            sources = tuple(name for name, (offered, *_) in shown.items() if offered)
            answer = TimedAnswer(row.length, spans, row.seconds)
            self._rows.append(AnswerRow(row.annotator_id, row.stream, sources, answer))
            self._seq = row.seq
        return bool(new)
