"""How good each source is: the share of its spans that people kept, and its F1 on random sentences.

The F1 is measured on the audit stream, where no suggestion was shown, and over the tags that the
source can suggest: a dictionary of places is not blamed for people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import func, select

from seqmix.serve.progress.estimates import span_counts
from seqmix.serve.progress.intervals import F1, with_interval
from seqmix.serve.progress.throttled import Throttled
from seqmix.serve.sources.filling import trouble_note
from seqmix.serve.sources.offers import Sources
from seqmix.serve.sources.records import MODEL, Source, list_sources
from seqmix.serve.store.current import gold_answers
from seqmix.serve.store.records import Answer, Mark, loads
from seqmix.serve.store.schema import events
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import NOTHING

_undone = events.alias()
_AFTER = (
    select(
        events.c.seq, events.c.kind, func.coalesce(events.c.shown, _undone.c.shown).label("shown")
    )
    .outerjoin(_undone, _undone.c.seq == events.c.undoes)
    .order_by(events.c.seq)
)


class Figures:
    """The figures of every source, computed at most every few seconds."""

    def __init__(self, store: Store, sources: Sources | None = None, every: float = 5.0) -> None:
        self._store, self._sources = store, sources or Sources(store)
        self._rows = Throttled(self._compute, every)
        self._seq, self._offered, self._kept = 0, Counter[str](), Counter[str]()
        # by source, its version, sentence and event, so that nothing is counted twice
        self._counts: dict[tuple[int, float, str, int], tuple[int, int, int]] = {}

    def rows(self) -> list[dict[str, Any]]:
        """Return the sources and the project's model, each with its figures, as JSON."""
        return self._rows()

    def forget(self) -> None:
        """Compute again when asked next: a source was added, changed or removed."""
        self._rows.forget()

    def _compute(self) -> list[dict[str, Any]]:
        self._read_events()
        chosen = list_sources(self._store)
        f1 = self._f1(chosen) if chosen else {}
        rows = [
            {"name": source.name, "kind": source.kind, "on": source.enabled}
            | self._kept_of(source.name)
            | {"f1": None if (figure := f1[source.id]) is None else asdict(figure)}
            | {"slow": self._sources.slow(source)}
            | {"trouble": self._store.read_note(trouble_note(source))}
            for source in chosen
        ]
        if self._offered[MODEL] and chosen:
            rows.append({"name": MODEL, "kind": MODEL, "on": True} | self._kept_of(MODEL))
        return rows

    def _kept_of(self, name: str) -> dict[str, int]:
        return {"offered": self._offered[name], "kept": self._kept[name]}

    def _read_events(self) -> None:
        """Count what was offered and kept since the last time; an undo takes its answer's back."""
        with self._store.reading() as conn:
            for row in conn.execute(_AFTER.where(events.c.seq > self._seq)):
                self._seq = row.seq
                sign = -1 if row.kind == "undo" else 1
                for name, (offered, kept, *_) in (loads(row.shown) or {}).items():
                    self._offered[name] += sign * offered
                    self._kept[name] += sign * kept

    def _f1(self, chosen: list[Source]) -> Mapping[int, F1 | None]:
        """Return the F1 of each source on the answered audit sentences."""
        answers = gold_answers(self._store, "audit")
        new = {
            answer.sentence_id
            for answer in answers
            for source in chosen
            if (source.id, source.at, answer.sentence_id, answer.seq) not in self._counts
        }
        sentences = {sentence.id: sentence for sentence in read_sentences(self._store, sorted(new))}
        counts = dict[tuple[int, float, str, int], tuple[int, int, int]]()
        for source in chosen:
            tags = self._sources.tags(source)
            for answer in answers:
                key = (source.id, source.at, answer.sentence_id, answer.seq)
                if key not in self._counts:
                    marks = self._sources.marks(source, sentences[answer.sentence_id])
                    if marks is None:
                        continue  # the source has not come to it yet
                    self._counts[key] = span_counts(_gold(answer, tags), marks, answer.sure)
                counts[key] = self._counts[key]
        self._counts = counts
        by_source = {
            source.id: [n for (id, *_), n in counts.items() if id == source.id] for source in chosen
        }
        return {
            id: with_interval(np.array(some, dtype=np.float64)) if some else None
            for id, some in by_source.items()
        }


def _gold(answer: Answer, tags: Collection[str]) -> list[Mark]:
    """Return the marks of an answer that a source of these tags should have suggested."""
    if NOTHING in tags:  # it only points at names
        return [Mark(mark.start, mark.end, NOTHING) for mark in answer.spans]
    return [mark for mark in answer.spans if mark.tag in tags]
