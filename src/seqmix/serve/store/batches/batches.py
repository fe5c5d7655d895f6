"""Batches: answers that were given in one go, with their cause, and are taken back in one go."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, literal, select, update
from sqlalchemy.orm import aliased

from seqmix.errors import NotFoundError
from seqmix.serve.store.batches.undo import cancel, last_answer
from seqmix.serve.store.derived import ANSWERS, REFRESH_ALL
from seqmix.serve.store.events import as_event, is_current
from seqmix.serve.store.records import dumps, loads
from seqmix.serve.store.schema import annotators, batches, current, events, queue
from seqmix.serve.store.store import Store


@dataclass(frozen=True)
class AnswerBatch:
    """Answers that an annotator gave in one go."""

    id: int
    kind: str
    annotator_id: int
    annotator: str
    at: float
    details: Mapping[str, Any]  # the cause
    undone_at: float | None = None


@dataclass(frozen=True)
class Undone:
    """How many answers of a batch an undo cancelled, and how many were changed since and stay."""

    cancelled: int
    changed: int


def add_batch(
    store: Store,
    kind: str,
    annotator_id: int,
    details: Mapping[str, Any],
    now: float | None = None,
) -> int:
    """Begin a batch and return its id; the events that belong to it carry that."""
    values = {"kind": kind, "annotator_id": annotator_id, "details": dumps(dict(details))}
    at = time.time() if now is None else now
    with store.writing() as conn:
        (id,) = conn.execute(insert(batches).values(**values, at=at)).inserted_primary_key or (0,)
    return int(id)


def read_batch(store: Store, batch_id: int) -> AnswerBatch:
    """Return a batch."""
    for batch in list_batches(store, batches.c.id == batch_id):
        return batch
    raise NotFoundError("batch", batch_id)


def list_batches(store: Store, *where: Any) -> list[AnswerBatch]:
    """Return the batches that meet some conditions (default: all), the newest first."""
    newest = (
        select(batches, annotators.c.name)
        .join(annotators, annotators.c.id == batches.c.annotator_id)
        .where(*where)
        .order_by(batches.c.id.desc())
    )
    with store.reading() as conn:
        return [
            AnswerBatch(
                row.id,
                row.kind,
                row.annotator_id,
                row.name,
                row.at,
                loads(row.details),
                row.undone_at,
            )
            for row in conn.execute(newest)
        ]


def batch_sizes(store: Store, ids: Collection[int]) -> dict[int, int]:
    """Return how many answers batches hold that no undo has cancelled."""
    undo = aliased(events)
    sizes = (
        select(events.c.batch, func.count())
        .where(events.c.batch.in_(ids), events.c.kind.in_(ANSWERS))
        .where(~select(undo.c.seq).where(undo.c.undoes == events.c.seq).exists())
        .group_by(events.c.batch)
    )
    with store.reading() as conn:
        return {id: int(n) for id, n in conn.execute(sizes)}


def batch_of(store: Store, seq: int) -> int | None:
    """Return the batch of an event."""
    with store.reading() as conn:
        return conn.execute(select(events.c.batch).where(events.c.seq == seq)).scalar()


def last_action(store: Store, annotator_id: int) -> dict[str, int] | None:
    """Return what an annotator takes back next: the last answer, by its seq, or a later batch.

    A batch that began after all answers holds none: nothing had to be corrected.
    """
    stands = and_(batches.c.annotator_id == annotator_id, batches.c.undone_at.is_(None))
    newest = select(batches.c.id, batches.c.at).where(stands).order_by(batches.c.id.desc()).limit(1)
    with store.reading() as conn:
        seq, batch = last_answer(store, annotator_id), conn.execute(newest).first()
        answered = conn.execute(select(events.c.at).where(events.c.seq == (seq or 0))).scalar()
    if batch is not None and (answered is None or batch.at >= answered):
        return {"batch": batch.id}
    return None if seq is None else {"seq": seq}


def undo_batch(store: Store, batch_id: int, undone_by: int, now: float | None = None) -> Undone:
    """Cancel the answers of a batch, all or none; those that were changed since stay.

    Undone twice, it is undone once.
    """
    at = time.time() if now is None else now
    with store.writing() as conn:
        read_batch(store, batch_id)
        cancelled = _cancel_first_answers(conn, batch_id, at) + _cancel_others(store, batch_id, at)
        once = and_(batches.c.id == batch_id, batches.c.undone_at.is_(None))
        conn.execute(update(batches).where(once).values(undone_by=undone_by, undone_at=at))
        undo = aliased(events)
        alive = and_(
            events.c.batch == batch_id,
            events.c.kind.in_(ANSWERS),
            ~select(undo.c.seq).where(undo.c.undoes == events.c.seq).exists(),
        )
        changed = conn.execute(select(func.count()).select_from(events).where(alive)).scalar_one()
        return Undone(cancelled, int(changed))


def _unchanged(batch_id: int) -> Any:
    """Return the condition for an answer of a batch that is still the annotator's answer."""
    return and_(
        events.c.batch == batch_id,
        events.c.kind.in_(ANSWERS),
        is_current(),
    )


def _cancel_first_answers(conn: Connection, batch_id: int, at: float) -> int:
    """Cancel the answers that replaced none, which may be many, in a few statements."""
    old = literal('{"spans":') + events.c.spans + literal(',"sure":')
    old = old + func.coalesce(events.c.sure, "null") + literal("}")
    undo = {
        "sentence_id": events.c.sentence_id,
        "annotator_id": events.c.annotator_id,
        "kind": literal("undo"),
        "spans": literal("[]"),
        "old": old,
        "seconds": literal(0.0),
        "at": literal(at),
        "stream": events.c.stream,
        "generation": events.c.generation,
        "undoes": events.c.seq,
        "batch": events.c.batch,
    }
    first = and_(_unchanged(batch_id), events.c.old.is_(None))
    n = conn.execute(select(func.count()).select_from(events).where(first)).scalar_one()
    cancelled = select(*undo.values()).where(first).order_by(events.c.seq)
    conn.execute(insert(events).from_select(list(undo), cancelled))
    undone = select(events.c.undoes).where(events.c.batch == batch_id, events.c.kind == "undo")
    conn.execute(delete(current).where(current.c.seq.in_(undone)))
    touched = select(events.c.sentence_id).where(
        events.c.batch == batch_id, events.c.kind == "undo"
    )
    conn.execute(REFRESH_ALL.where(queue.c.sentence_id.in_(touched)))
    return int(n)


def _cancel_others(store: Store, batch_id: int, at: float) -> int:
    """Cancel the answers that replaced another, which counts again."""
    replaced = select(events).where(_unchanged(batch_id)).order_by(events.c.seq)
    with store.writing() as conn:
        rows = conn.execute(replaced).all()
    for row in rows:
        cancel(store, as_event(row), at, reopen=False, batch=batch_id)
    return len(rows)
