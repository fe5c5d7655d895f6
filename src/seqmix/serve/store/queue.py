"""Who gets which sentence next.

    audit    a random sample of all sentences, shown without suggestion, for an unbiased F1
    active   the others, in the order of the last finished ranking; at random before there is one
    overlap  an active sentence that another annotator has answered, to measure agreement

A sentence is open on one page at a time: a lease says on whose. Asking again returns the same
sentence, so a reload loses nothing. A skipped sentence is offered to everybody else first and comes
back to whoever skipped it at the end. A discarded sentence is asked of nobody.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import (
    BindParameter,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from seqmix.data.sentence import Sentence
from seqmix.errors import NotFoundError
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.derived import refresh
from seqmix.serve.store.records import is_key, loads
from seqmix.serve.store.schema import annotators, current, events, leases, meta, queue, sentences
from seqmix.serve.store.sentences import LOTS, bare
from seqmix.serve.store.store import Store

_CLOCKS_DIFFER = 60.0  # seconds by which the servers of one store may be apart

# Statements are built once: building one takes SQLAlchemy longer than SQLite takes to run it.
_ANNOTATOR: BindParameter[int] = bindparam("annotator")
_NEWEST_LEASE = select(func.max(leases.c.at))
_EXPIRED = select(leases.c.sentence_id).where(leases.c.at < bindparam("before"))
_LEASE_OF = (  # the sentence opened last: after an undo, that is the one undone
    select(leases)
    .where(leases.c.annotator_id == _ANNOTATOR, leases.c.at >= bindparam("since"))
    .order_by(leases.c.at.desc())
    .limit(1)
)
_UNSEEN = (
    ~select(current.c.seq)
    .where(current.c.sentence_id == queue.c.sentence_id, current.c.annotator_id == _ANNOTATOR)
    .exists()
)
_FIRST = select(queue.c.sentence_id).where(queue.c.state == "free", _UNSEEN).limit(1)
_FREE = {
    "audit": _FIRST.where(queue.c.stream == "audit").order_by(queue.c.lot),
    "active": _FIRST.where(queue.c.stream == "active").order_by(
        queue.c.generation.desc(), queue.c.rank
    ),
}
_OPEN = select(queue.c.sentence_id).where(queue.c.state.in_(("free", "held")))
_WAITING = {
    "audit": _OPEN.where(queue.c.stream == "audit").order_by(queue.c.lot),
    "active": _OPEN.where(queue.c.stream == "active").order_by(
        queue.c.generation.desc(), queue.c.rank
    ),
}
_SKIPPED = (
    select(queue.c.sentence_id, queue.c.stream)
    .join_from(current, queue, queue.c.sentence_id == current.c.sentence_id)
    .where(current.c.annotator_id == _ANNOTATOR, current.c.kind == "skip", queue.c.state == "free")
    .order_by(current.c.seq)
    .limit(1)
)
# subtle: `chance` is drawn from the tokens once. Were the overlap "the next few answered", it would
# follow the ranking, and agreement would be measured on hard sentences only.
_OVERLAP = (
    select(queue.c.sentence_id)
    .where(
        queue.c.sole.in_(select(annotators.c.id).where(annotators.c.id != _ANNOTATOR)),
        queue.c.chance < bindparam("share"),
        _UNSEEN,
    )
    .limit(1)
)
_TAKEN = (  # not the free ones: there are too many to count
    select(queue.c.stream, func.count().label("n"))
    .where(queue.c.stream.in_(("audit", "active")), queue.c.state.in_(("done", "held")))
    .group_by(queue.c.stream)
)
_DONE = (
    select(queue.c.stream, func.count().label("n"))
    .where(queue.c.stream.in_(("audit", "active")), queue.c.state == "done")
    .group_by(queue.c.stream)
)
_ALL = queue.alias()
_SHOWN = (
    select(
        sentences,
        queue.c.stream,
        queue.c.suggestion,
        queue.c.generation,
        select(func.coalesce(func.max(events.c.seq), 0))
        .where(
            and_(
                events.c.sentence_id == sentences.c.id,
                events.c.annotator_id == _ANNOTATOR,
                events.c.kind != "adjudicate",
            )
        )
        .scalar_subquery()
        .label("version"),
        select(meta.c.value).where(meta.c.key == "pool").scalar_subquery().label("pool"),
        select(func.count())
        .where(_ALL.c.stream.in_(("audit", "active")), _ALL.c.state.in_(("done", "discard")))
        .scalar_subquery()
        .label("done"),
    )
    .join_from(sentences, queue)
    .where(sentences.c.id == bindparam("sentence"))
)


@dataclass(frozen=True)
class Rules:
    """The settings of a project that the queue follows."""

    audit_share: float = 0.1
    overlap_share: float = 0.0
    lease: float = 1800.0  # seconds after which an open sentence goes to somebody else


@dataclass(frozen=True)
class Shown:
    """A sentence to show and what a page needs to know about it."""

    sentence: Sentence
    version: int  # to send back with the answer
    stream: str
    suggestion: Mapping[str, Any] | None  # never for an audit sentence
    generation: int | None  # of the ranking that chose it
    left: int  # sentences nobody has labeled yet


def next_sentence(
    store: Store, annotator_id: int, rules: Rules | None = None, now: float | None = None
) -> Shown | None:
    """Return the sentence this annotator should see now; None when nothing is left.

    It stays theirs until they answer or skip it, or until the lease expires.
    """
    rules, at = rules or Rules(), time.time() if now is None else now
    who = {"annotator": annotator_id}
    with store.reading() as conn:
        lease = conn.execute(_LEASE_OF, {**who, "since": at - rules.lease / 2}).first()
        if lease is not None:
            return _show(store, lease.sentence_id, annotator_id, lease.stream)
    with store.writing(durable=False) as conn:
        _correct_future_leases(conn, at)
        release(conn, at - rules.lease)
        lease = conn.execute(_LEASE_OF, {**who, "since": 0.0}).first()
        if lease is not None:
            id, stream = lease.sentence_id, lease.stream
            is_lease = and_(leases.c.sentence_id == id, leases.c.annotator_id == annotator_id)
            conn.execute(update(leases).where(is_lease).values(at=at))
        else:
            choice = _choose(conn, annotator_id, rules)
            if choice is None:
                return None
            id, stream = choice
            row = {"sentence_id": id, "annotator_id": annotator_id, "stream": stream, "at": at}
            conn.execute(insert(leases), row)
            refresh(conn, id)
        return _show(store, id, annotator_id, stream)


def coming_ids(conn: Connection, most: int) -> list[str]:
    """Return the sentences that people get next if no audit sentence comes between."""
    return list(conn.execute(_WAITING["active"].limit(most)).scalars())


def in_order(store: Store, audit_share: float) -> list[str]:
    """Return the ids of sentences without a label, in the order in which people get them."""
    with store.reading() as conn:
        done = {row.stream: row.n for row in conn.execute(_DONE)}
        audit, active = (deque(conn.execute(_WAITING[s]).scalars()) for s in ("audit", "active"))
    order, audited, answered = list[str](), done.get("audit", 0), sum(done.values())
    while audit and active:
        due = audited < audit_share * (answered + len(order))
        order.append((audit if due else active).popleft())
        audited += due
    return [*order, *active, *audit]


def unlabeled_ids(
    store: Store, limit: int | None = None, rng: np.random.Generator | None = None
) -> list[str]:
    """Return ids of the pool, or a random sample of `limit` of them.

    The sample is a stretch of the random order that begins anywhere.
    """
    pool = (
        select(queue.c.sentence_id)
        .where(queue.c.stream == "active", queue.c.state.in_(("free", "held")))
        .order_by(queue.c.lot)
    )
    rng = rng or np.random.default_rng()
    start = int(rng.integers(LOTS)) if limit is not None else 0
    with store.reading() as conn:
        ids = list(conn.execute(pool.where(queue.c.lot >= start).limit(limit)).scalars())
        if limit is not None and len(ids) < limit:
            rest = pool.where(queue.c.lot < start).limit(limit - len(ids))
            ids += conn.execute(rest).scalars()
    return ids


def assign(conn: Connection, sentence_id: str, annotator_id: int) -> None:
    """Give an annotator a sentence, whoever else has answered it or has it open."""
    key = {"sentence_id": sentence_id, "annotator_id": annotator_id}
    if conn.execute(select(leases.c.stream).filter_by(**key)).first() is None:
        stream = select(queue.c.stream).where(queue.c.sentence_id == sentence_id).scalar_subquery()
        conn.execute(insert(leases).values(**key, stream=stream, at=time.time()))


def give_back(conn: Connection, sentence_id: str, annotator_id: int) -> None:
    """Take a sentence from an annotator who has it open."""
    key = {"sentence_id": sentence_id, "annotator_id": annotator_id}
    conn.execute(delete(leases).filter_by(**key))
    refresh(conn, sentence_id)


def show_sentence(store: Store, sentence_id: str, annotator_id: int) -> Shown:
    """Return a sentence to go back to, without a lease."""
    stream_of = select(queue.c.stream).where(queue.c.sentence_id == sentence_id)
    with store.reading() as conn:
        stream = conn.execute(stream_of).scalar() if is_key(sentence_id) else None
        if stream is None:
            raise NotFoundError("sentence", sentence_id)
        return _show(store, sentence_id, annotator_id, stream)


def why_nothing_left(store: Store) -> str:
    """Return why there is no next sentence, in words for the page."""
    held = read_counts(store).held
    if not held:
        return "every sentence is labeled"
    last = "the last sentence is" if held == 1 else f"the last {held} sentences are"
    return f"{last} open on another page; try again in a while"


def release(conn: Connection, before: float) -> None:
    """End the leases that were taken before a moment."""
    for id in conn.execute(_EXPIRED, {"before": before}).scalars().all():
        conn.execute(delete(leases).where(leases.c.sentence_id == id, leases.c.at < before))
        refresh(conn, id)


def _correct_future_leases(conn: Connection, now: float) -> None:
    """Let leases from the future begin now: a clock was set back, and they would not expire."""
    newest = conn.execute(_NEWEST_LEASE).scalar()
    if newest is not None and newest > now + _CLOCKS_DIFFER:
        future = leases.c.at > now + _CLOCKS_DIFFER
        conn.execute(update(leases).where(future).values(at=leases.c.at - (newest - now)))


def _choose(conn: Connection, annotator_id: int, rules: Rules) -> tuple[str, str] | None:
    """Return a sentence and the stream it is shown for."""
    who = {"annotator": annotator_id}
    if rules.overlap_share > 0:
        id = conn.execute(_OVERLAP, {**who, "share": rules.overlap_share}).scalar()
        if id is not None:
            return id, "overlap"
    taken = {row.stream: row.n for row in conn.execute(_TAKEN)}
    audit_due = taken.get("audit", 0) < rules.audit_share * sum(taken.values())
    for stream in ("audit", "active") if audit_due else ("active", "audit"):
        id = conn.execute(_FREE[stream], who).scalar()
        if id is not None:
            return id, stream
    skipped = conn.execute(_SKIPPED, who).first()
    return None if skipped is None else (skipped.sentence_id, skipped.stream)


def _show(store: Store, id: str, annotator_id: int, stream: str) -> Shown:
    with store.reading() as conn:
        row: Any = conn.execute(_SHOWN, {"sentence": id, "annotator": annotator_id}).one()
        ranked = row.stream == "active" and row.generation >= 0
        return Shown(
            bare(row),
            row.version,
            stream,
            store.tag_history().suggestion(loads(row.suggestion)) if ranked else None,
            row.generation if ranked else None,
            loads(row.pool) - row.done,
        )
