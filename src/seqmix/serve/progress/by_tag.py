"""How each tag does: its marks so far, the model's F1 on it, and how annotators agree on it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import func, select

from seqmix.serve.progress.estimates import predicted_audit, span_counts
from seqmix.serve.progress.intervals import with_interval
from seqmix.serve.progress.throttled import Throttled
from seqmix.serve.store.current import gold_answers
from seqmix.serve.store.records import Answer
from seqmix.serve.store.schema import generations
from seqmix.serve.store.store import Store


class TagProgress:
    """The progress of each tag, computed at most every half minute."""

    def __init__(self, store: Store, every: float = 30.0) -> None:
        self._store, self._rows = store, Throttled(self._compute, every)

    def rows(self) -> list[dict[str, Any]]:
        """Return each tag with its marks, the sentences they are in, and its F1 on the audit."""
        return self._rows()

    def _compute(self) -> list[dict[str, Any]]:
        answers = gold_answers(self._store)
        spans, sentences = Counter[str](), Counter[str]()
        for answer in answers:
            spans.update(mark.tag for mark in answer.spans)
            sentences.update({mark.tag for mark in answer.spans})
        f1 = self._f1([answer for answer in answers if answer.stream == "audit"])
        return [
            {"tag": tag, "spans": spans[tag], "sentences": sentences[tag], "f1": f1.get(tag)}
            for tag in self._store.read_tags()
        ]

    def _f1(self, answers: list[Answer]) -> dict[str, Any]:
        """Return the F1 of the newest model by tag, where there are enough audit answers."""
        number = func.max(generations.c.number)
        with self._store.reading() as conn:
            newest = conn.execute(select(number).where(generations.c.audit != "[]")).scalar()
            if newest is None:
                return {}
            predicted = predicted_audit(conn, newest, self._store.tag_history())
        audited = [answer for answer in answers if answer.sentence_id in predicted]
        figures = {}
        for tag in self._store.read_tags():
            counts = [
                span_counts(
                    [mark for mark in answer.spans if mark.tag == tag],
                    [mark for mark in predicted[answer.sentence_id] if mark.tag == tag],
                    answer.sure,
                )
                for answer in audited
                if tag not in answer.unasked
            ]
            f1 = with_interval(np.array(counts, np.float64)) if counts else None
            figures[tag] = None if f1 is None else asdict(f1)
        return figures
