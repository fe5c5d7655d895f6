"""Undo: an event that cancels an answer or a decision, so that nothing of the history is lost."""

from __future__ import annotations

import time

from sqlalchemy import Connection, insert, select
from sqlalchemy.orm import aliased

from seqmix.errors import NotFoundError, StaleError
from seqmix.serve.store.answers import END_LEASE
from seqmix.serve.store.derived import (
    ANSWERS,
    DECISION,
    refresh,
    uncancelled,
    write_current,
)
from seqmix.serve.store.events import append, as_event, history, with_tags_of_now
from seqmix.serve.store.records import Event
from seqmix.serve.store.schema import events, leases, queue
from seqmix.serve.store.store import Store


def undo_answer(
    store: Store, annotator_id: int, seq: int | None = None, now: float | None = None
) -> Event | None:
    """Cancel an answer or skip of the annotator (by default the last one) and reopen the sentence.

    A decision is cancelled if its seq is given; then the answers count again. Cancelling the same
    twice is one event. None: there is nothing to undo.
    """
    with store.writing() as conn:
        at = time.time() if now is None else now
        seq = last_answer(store, annotator_id) if seq is None else seq
        if seq is None:
            return None
        row = conn.execute(
            select(events).where(events.c.seq == seq, events.c.kind.in_((*ANSWERS, DECISION)))
        ).first()
        if row is None or row.annotator_id != annotator_id:
            raise NotFoundError("answer of yours", seq)
        earlier = conn.execute(select(events).where(events.c.undoes == seq)).first()
        if earlier is not None:
            return as_event(earlier)
        if row.kind == DECISION:
            return _cancel_decision(conn, as_event(row), at)
        return cancel(store, as_event(row), at)


def is_decision(store: Store, seq: int) -> bool:
    """Whether an event is an admin's decision."""
    with store.reading() as conn:
        kind = conn.execute(select(events.c.kind).where(events.c.seq == seq)).scalar()
    return bool(kind == DECISION)


def _cancel_decision(conn: Connection, decision: Event, at: float) -> Event:
    id = decision.sentence_id
    gold = conn.execute(select(queue.c.gold).where(queue.c.sentence_id == id)).scalar()
    if gold != decision.seq:
        raise StaleError(
            "this has been decided again since; take back that decision first", gold or 0
        )
    event = _append_undo(conn, decision, decision, None, at)
    refresh(conn, id)
    return event


def _append_undo(
    conn: Connection,
    cancelled: Event,
    shown: Event,
    remaining: Event | None,
    at: float,
    batch: int | None = None,
) -> Event:
    """Append the undo of an event, with what is left of its annotator's answer.

    `shown` is the same event with the tags of now.
    """
    return append(
        conn,
        sentence_id=cancelled.sentence_id,
        annotator_id=cancelled.annotator_id,
        kind="undo",
        marks=remaining.spans if remaining else (),
        sure=remaining.sure if remaining else None,
        previous=shown,
        seconds=0.0,
        at=at,
        stream=cancelled.stream,
        generation=cancelled.generation,
        undoes=cancelled.seq,
        batch=batch,
    )


def cancel(
    store: Store, cancelled: Event, at: float, reopen: bool = True, batch: int | None = None
) -> Event:
    """Append the undo of an answer; with `reopen`, its sentence is the annotator's again."""
    id, annotator_id = cancelled.sentence_id, cancelled.annotator_id
    with store.writing() as conn:
        log = with_tags_of_now(history(conn, id, annotator_id), store.tag_history())
        *remaining, newest = uncancelled(log)
        if newest.seq != cancelled.seq:
            raise StaleError(
                "this answer has been corrected since; take back the correction first", newest.seq
            )
        left = remaining[-1] if remaining else None
        event = _append_undo(conn, cancelled, newest, left, at, batch)
        write_current(conn, id, annotator_id, remaining)
        conn.execute(END_LEASE, {"sentence": id, "annotator": annotator_id})
        if reopen and (left is None or left.kind == "skip"):
            lease = {"annotator_id": annotator_id, "stream": cancelled.stream, "at": at}
            conn.execute(insert(leases).values(sentence_id=id, **lease))
        refresh(conn, id)
        return event


def last_answer(store: Store, annotator_id: int) -> int | None:
    """Return the seq of the annotator's last answer or skip that no undo has cancelled."""
    later = aliased(events)
    cancelled = select(later.c.seq).where(later.c.undoes == events.c.seq).exists()
    answers = select(events.c.seq).where(
        events.c.annotator_id == annotator_id, events.c.kind.in_(ANSWERS), ~cancelled
    )
    with store.reading() as conn:
        return conn.execute(answers.order_by(events.c.seq.desc()).limit(1)).scalar()
