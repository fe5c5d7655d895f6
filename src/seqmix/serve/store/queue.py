"""Who gets which sentence next.

    audit    a random sample of all sentences, shown without suggestion: what a model makes of them is an honest F1
    active   the others, in the order of the last finished ranking; at random before there is one
    overlap  an active sentence that one other annotator has answered, for agreement

A sentence is open on one page at a time: a lease says on whose. Who asks again is given the same sentence again, so a reload loses
nothing. A skipped sentence is offered to everybody else first and comes back to its skipper at the end.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
from seqmix.serve.store import sentences as texts
from seqmix.serve.store.answers import refresh
from seqmix.serve.store.records import is_key, loads
from seqmix.serve.store.schema import annotators, current, events, leases, meta, queue, sentences
from seqmix.serve.store.store import Store

_CLOCKS_DIFFER = 60.0  # seconds by which the servers of one store may be apart


@dataclass(frozen=True)
class Rules:
    """What of the project's settings the queue looks at."""

    audit_share: float = 0.1
    overlap_share: float = 0.0
    lease: float = 1800.0  # seconds after which a sentence left open is given to somebody else


@dataclass(frozen=True)
class Given:
    """A sentence to show, and all a page needs to know with it."""

    sentence: Sentence
    version: int  # to send back with the answer
    stream: str
    suggestion: Mapping[str, Any] | None  # never for an audit sentence
    generation: int | None  # of the ranking that chose it
    left: int  # sentences nobody has labeled yet


def next_sentence(
    store: Store, annotator_id: int, rules: Rules | None = None, now: float | None = None
) -> Given | None:
    """The sentence this annotator should see now; it stays theirs until they answer, skip, or the lease runs out. None: nothing is left."""
    rules, at = rules or Rules(), time.time() if now is None else now
    with store.reading() as conn:
        kept = conn.execute(_OWN_LEASE, {"by": annotator_id, "since": at - rules.lease / 2}).first()
        if kept is not None:
            return _given(conn, kept.sentence_id, annotator_id, kept.stream)
    with store.writing(durable=False) as conn:
        _set_back(conn, at)
        release(conn, at - rules.lease)
        kept = conn.execute(_OWN_LEASE, {"by": annotator_id, "since": 0.0}).first()
        if kept is not None:
            id, stream = kept.sentence_id, kept.stream
            conn.execute(
                update(leases)
                .where(leases.c.sentence_id == id, leases.c.annotator_id == annotator_id)
                .values(at=at)
            )
        else:
            found = _choose(conn, annotator_id, rules)
            if found is None:
                return None
            id, stream = found
            conn.execute(
                insert(leases),
                {"sentence_id": id, "annotator_id": annotator_id, "stream": stream, "at": at},
            )
            refresh(conn, id)
        return _given(conn, id, annotator_id, stream)


def in_order(store: Store, audit_share: float) -> list[str]:
    """Return the ids of the sentences nobody has labeled, in the order people are asked for them."""
    with store.reading() as conn:
        done = {row.stream: row.n for row in conn.execute(_DONE)}
        audit, active = (deque(conn.execute(_WAITING[s]).scalars()) for s in ("audit", "active"))
    order, audited, answered = list[str](), done.get("audit", 0), sum(done.values())
    while audit and active:
        due = audited < audit_share * (answered + len(order))
        order.append((audit if due else active).popleft())
        audited += due
    return [*order, *active, *audit]


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


def show(store: Store, sentence_id: str, annotator_id: int) -> Given:
    """A sentence for going back to it. Looking gives no lease."""
    with store.reading() as conn:
        wanted = select(queue.c.stream).where(queue.c.sentence_id == sentence_id)
        stream = conn.execute(wanted).scalar() if is_key(sentence_id) else None
        if stream is None:
            raise NotFoundError("sentence", sentence_id)
        return _given(conn, sentence_id, annotator_id, stream)


def why_nothing(store: Store) -> str:
    """Why there is no next sentence, in words for the page."""
    held = store.counts().held
    if held:
        return f"{'the last sentence is' if held == 1 else f'the last {held} sentences are'} open on another page; look again in a while"
    return "every sentence is labeled"


def release(conn: Connection, before: float) -> None:
    """Leases taken before this moment end."""
    for id in conn.execute(_RUN_OUT, {"before": before}).scalars().all():
        conn.execute(delete(leases).where(leases.c.sentence_id == id, leases.c.at < before))
        refresh(conn, id)


def _set_back(conn: Connection, now: float) -> None:
    """Leases from the future begin now: the clock was set back, and a sentence left open would stay so until it has caught up."""
    newest = conn.execute(_NEWEST_LEASE).scalar()
    if newest is not None and newest > now + _CLOCKS_DIFFER:
        conn.execute(
            update(leases)
            .where(leases.c.at > now + _CLOCKS_DIFFER)
            .values(at=leases.c.at - (newest - now))
        )


def _choose(conn: Connection, annotator_id: int, rules: Rules) -> tuple[str, str] | None:
    """A sentence and the stream it is given for."""
    if rules.overlap_share > 0:
        twice = conn.execute(_OVERLAP, {"by": annotator_id, "share": rules.overlap_share}).scalar()
        if twice is not None:
            return twice, "overlap"
    busy = {row.stream: row.n for row in conn.execute(_BUSY)}
    due = busy.get("audit", 0) < rules.audit_share * sum(busy.values())
    for stream in ("audit", "active") if due else ("active", "audit"):
        id = conn.execute(_FREE[stream], {"by": annotator_id}).scalar()
        if id is not None:
            return id, stream
    last = conn.execute(_SKIPPED, {"by": annotator_id}).first()
    return None if last is None else (last.sentence_id, last.stream)


def _given(conn: Connection, id: str, annotator_id: int, stream: str) -> Given:
    row: Any = conn.execute(_WHOLE, {"of": id, "by": annotator_id}).one()
    ranked = row.stream == "active" and row.generation >= 0
    suggestion = loads(row.suggestion) if ranked else None
    return Given(
        texts.bare(row),
        row.version,
        stream,
        suggestion,
        row.generation if ranked else None,
        loads(row.pool) - row.done,
    )


# Built once: building a statement takes SQLAlchemy longer than SQLite takes to run it.
_BY: BindParameter[int] = bindparam("by")
_NEWEST_LEASE = select(func.max(leases.c.at))
_RUN_OUT = select(leases.c.sentence_id).where(leases.c.at < bindparam("before"))
_OWN_LEASE = (  # the sentence opened last: after an undo, that is the one undone
    select(leases)
    .where(leases.c.annotator_id == _BY, leases.c.at >= bindparam("since"))
    .order_by(leases.c.at.desc())
    .limit(1)
)
_UNTOUCHED = (
    ~select(current.c.seq)
    .where(current.c.sentence_id == queue.c.sentence_id, current.c.annotator_id == _BY)
    .exists()
)
_FIRST = select(queue.c.sentence_id).where(queue.c.state == "free", _UNTOUCHED).limit(1)
_FREE = {
    "audit": _FIRST.where(queue.c.stream == "audit").order_by(queue.c.lot),
    "active": _FIRST.where(queue.c.stream == "active").order_by(
        queue.c.generation.desc(), queue.c.rank
    ),
}
_OPEN = select(queue.c.sentence_id).where(queue.c.state != "done")
_WAITING = {
    "audit": _OPEN.where(queue.c.stream == "audit").order_by(queue.c.lot),
    "active": _OPEN.where(queue.c.stream == "active").order_by(
        queue.c.generation.desc(), queue.c.rank
    ),
}
_SKIPPED = (
    select(queue.c.sentence_id, queue.c.stream)
    .join_from(current, queue, queue.c.sentence_id == current.c.sentence_id)
    .where(current.c.annotator_id == _BY, current.c.kind == "skip", queue.c.state == "free")
    .order_by(current.c.seq)
    .limit(1)
)
# subtle: `chance` is drawn from the tokens once and for all. Were the overlap "the next few answered", it would follow the ranking,
# and agreement on hard sentences would pass for agreement.
_OVERLAP = (
    select(queue.c.sentence_id)
    .where(
        queue.c.sole.in_(select(annotators.c.id).where(annotators.c.id != _BY)),
        queue.c.chance < bindparam("share"),
        _UNTOUCHED,
    )
    .limit(1)
)
_BUSY = (  # the free ones are the many, and are not counted
    select(queue.c.stream, func.count().label("n"))
    .where(queue.c.stream.in_(("audit", "active")), queue.c.state.in_(("done", "held")))
    .group_by(queue.c.stream)
)
_DONE = (
    select(queue.c.stream, func.count().label("n"))
    .where(queue.c.stream.in_(("audit", "active")), queue.c.state == "done")
    .group_by(queue.c.stream)
)
_OTHER = queue.alias()
_WHOLE = (
    select(
        sentences,
        queue.c.stream,
        queue.c.suggestion,
        queue.c.generation,
        select(func.coalesce(func.max(events.c.seq), 0))
        .where(
            and_(
                events.c.sentence_id == sentences.c.id,
                events.c.annotator_id == _BY,
                events.c.kind != "adjudicate",
            )
        )
        .scalar_subquery()
        .label("version"),
        select(meta.c.value).where(meta.c.key == "pool").scalar_subquery().label("pool"),
        select(func.count())
        .where(_OTHER.c.stream.in_(("audit", "active")), _OTHER.c.state == "done")
        .scalar_subquery()
        .label("done"),
    )
    .join_from(sentences, queue)
    .where(sentences.c.id == bindparam("of"))
)
