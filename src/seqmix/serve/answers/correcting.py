"""Which answers somebody may correct, and what the correction is.

their own, a language model's, one accepted in bulk   their label, which replaces it
somebody else's, or a decision                        an admin's decision, which counts instead
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from seqmix.errors import NotFoundError, StaleError
from seqmix.serve.store.annotators import MODEL
from seqmix.serve.store.answers import answer_version
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.derived import DECISION
from seqmix.serve.store.records import BULK, Annotator, Answer
from seqmix.serve.store.schema import events, queue
from seqmix.serve.store.store import Store

LABEL = "label"


@dataclass(frozen=True)
class Correction:
    """An answer to correct."""

    answer: Answer
    kind: str  # of the answer that corrects it: label or adjudicate
    version: int  # to send with that


def correction_kind(reader: Annotator, answer: Answer, counts: bool) -> str | None:
    """Return what a correction of an answer by somebody is; None: they cannot correct it.

    A model's answer that no longer counts is left: the one that counts can be corrected. So is
    somebody's skip, and an answer with spans of a split tag, for each of which they must choose.
    """
    mine = answer.annotator_id == reader.id
    if answer.kind != DECISION:
        if mine:
            return LABEL
        if answer.annotator.startswith(MODEL) or answer.stream == BULK:
            return LABEL if counts else None
    may = reader.admin and answer.kind != "skip" and not answer.open
    return DECISION if may else None


def read_correction(store: Store, reader: Annotator, seq: int) -> Correction:
    """Return the answer with an event, for somebody who may correct it."""
    with store.reading() as conn:
        about = select(events.c.sentence_id, queue.c.gold).join_from(
            events, queue, queue.c.sentence_id == events.c.sentence_id
        )
        row = conn.execute(about.where(events.c.seq == seq)).first()
        if row is None:
            raise NotFoundError("answer", seq)
        answers = current_answers(store, row.sentence_id, overridden=True)
        answer = next((answer for answer in answers if answer.seq == seq), None)
        if answer is None:
            raise StaleError("this answer has been changed since; load the list again", seq)
        kind = correction_kind(reader, answer, row.gold == seq)
        if kind is None:
            raise NotFoundError("answer that you may correct", seq)
        by = reader.id if kind == LABEL else None
        return Correction(answer, kind, answer_version(store, row.sentence_id, by))
