"""Events in, current state out. Every function works inside the transaction its caller has open.

What holds at any moment is what a replay of the events would give: `current` and the derived columns of `queue` are only kept
beside so that nothing has to be replayed to show the next sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased

from seqmix.errors import DataError, NotFoundError, StaleError
from seqmix.serve.store.records import (
    Event,
    Mark,
    Ranges,
    checked_marks,
    checked_seconds,
    checked_sure,
    dumps,
    is_key,
    loads,
)
from seqmix.serve.store.schema import current, events, leases, queue, sentences

_LIVE = ("label", "skip")
_TAKEN = "this sentence is with another annotator by now; go on with the next one"

# subtle: statements that every answer needs are built once, here. Building one takes SQLAlchemy longer than SQLite takes to run it.
_PLACE = (
    select(sentences.c.length, queue.c.stream, queue.c.state, queue.c.generation)
    .join_from(sentences, queue)
    .where(sentences.c.id == bindparam("of"))
)
_HISTORY = select(events).where(events.c.sentence_id == bindparam("of")).order_by(events.c.seq)
_OWN_HISTORY = _HISTORY.where(
    events.c.annotator_id == bindparam("by"), events.c.kind != "adjudicate"
)
_IS_LEASE = and_(leases.c.sentence_id == bindparam("of"), leases.c.annotator_id == bindparam("by"))
_LEASE, _END_LEASE = select(leases.c.stream).where(_IS_LEASE), delete(leases).where(_IS_LEASE)
_IS_CURRENT = and_(
    current.c.sentence_id == bindparam("of"), current.c.annotator_id == bindparam("by")
)
_FORGET = delete(current).where(_IS_CURRENT)
_RENEW = (
    update(current)
    .where(_IS_CURRENT)
    .values({name: bindparam(f"new_{name}") for name in ("seq", "since", "kind")})
)


def _refreshing() -> Update:
    labels = and_(current.c.sentence_id == queue.c.sentence_id, current.c.kind == "label")
    first = select(current.c.seq).where(labels).order_by(current.c.since).limit(1).scalar_subquery()
    judged = and_(events.c.sentence_id == queue.c.sentence_id, events.c.kind == "adjudicate")
    decided = select(func.max(events.c.seq)).where(judged).scalar_subquery()
    opened = select(leases.c.at).where(leases.c.sentence_id == queue.c.sentence_id).exists()
    once = select(func.count()).select_from(current).where(labels).scalar_subquery() == 1
    alone = select(func.max(current.c.annotator_id)).where(labels).scalar_subquery()
    gold = func.coalesce(decided, first)
    return update(queue).values(
        gold=gold,
        sole=case((and_(queue.c.stream == "active", once, decided.is_(None), ~opened), alone)),
        state=case(
            (or_(queue.c.stream == "seed", gold.is_not(None)), "done"),
            (opened, "held"),
            else_="free",
        ),
    )


_REFRESH = _refreshing()
_REFRESH_ONE = _REFRESH.where(queue.c.sentence_id == bindparam("of"))


def save(
    conn: Connection,
    tags: Collection[str],
    sentence_id: str,
    annotator_id: int,
    kind: str,
    marks: Iterable[Any],
    sure: Iterable[Any] | None,
    seconds: float,
    version: int,
    now: float,
    stream: str | None = None,
) -> Event:
    """Append one answer, and say what it is now known as. The same answer sent twice, as after a broken line, is one event."""
    if kind not in (*_LIVE, "adjudicate"):
        raise DataError("expected an answer of the kind label, skip or adjudicate", text=kind)
    place = _place(conn, sentence_id)
    marks = () if kind == "skip" else checked_marks(marks, place.length, tags)
    sure = None if kind == "skip" else checked_sure(sure, marks, place.length)
    before = history(conn, sentence_id, None if kind == "adjudicate" else annotator_id)
    last = before[-1] if before else None
    if version != (last.seq if last else 0):
        if (
            last
            and version == (before[-2].seq if len(before) > 1 else 0)
            and _same(last, annotator_id, kind, marks, sure)
        ):
            return last
        raise StaleError(
            "this sentence was answered since it was shown here; load it again",
            last.seq if last else 0,
        )
    own = [event for event in before if event.annotator_id == annotator_id]
    standing = live(own)
    lease = conn.execute(_LEASE, {"of": sentence_id, "by": annotator_id}).scalar()
    if (
        kind != "adjudicate"
        and lease is None
        and place.state != "free"
        and not (standing and standing[-1].kind == "label")
    ):
        raise StaleError(_TAKEN, version)
    event = _append(
        conn,
        sentence_id=sentence_id,
        annotator_id=annotator_id,
        kind=kind,
        marks=marks,
        sure=sure,
        old=standing[-1] if standing else None,
        seconds=checked_seconds(seconds),
        at=now,
        stream=stream or lease or (own[-1].stream if own else place.stream),
        generation=place.generation if place.generation >= 0 else None,
    )
    if kind != "adjudicate":
        conn.execute(_END_LEASE, {"of": sentence_id, "by": annotator_id})
        _keep(conn, sentence_id, annotator_id, [*standing, event])
    refresh(conn, sentence_id)
    return event


def last_answer(conn: Connection, annotator_id: int) -> int | None:
    """The seq of the annotator's last answer or skip that still counts."""
    later = aliased(events)
    cancelled = select(later.c.seq).where(later.c.undoes == events.c.seq).exists()
    wanted = select(events.c.seq).where(
        events.c.annotator_id == annotator_id, events.c.kind.in_(_LIVE), ~cancelled
    )
    return conn.execute(wanted.order_by(events.c.seq.desc()).limit(1)).scalar()


def undo(conn: Connection, annotator_id: int, now: float, seq: int | None = None) -> Event | None:
    """Cancel an answer or skip of the annotator, the last one unless told, and hand the sentence back to them. None: nothing is left.

    The same one cancelled twice, as after a broken line, is one event.
    """
    seq = last_answer(conn, annotator_id) if seq is None else seq
    if seq is None:
        return None
    found = conn.execute(
        select(events).where(events.c.seq == seq, events.c.kind.in_(_LIVE))
    ).first()
    if found is None or found.annotator_id != annotator_id:
        raise NotFoundError("answer of yours", seq)
    before = conn.execute(select(events).where(events.c.undoes == seq)).first()
    if before is not None:
        return as_event(before)
    last = as_event(found)
    answered = live(history(conn, last.sentence_id, annotator_id))
    if answered[-1].seq != seq:
        raise StaleError(
            "this answer was corrected since; take back the correction first", answered[-1].seq
        )
    standing = answered[:-1]
    event = _append(
        conn,
        sentence_id=last.sentence_id,
        annotator_id=annotator_id,
        kind="undo",
        marks=standing[-1].spans if standing else (),
        sure=standing[-1].sure if standing else None,
        old=last,
        seconds=0.0,
        at=now,
        stream=last.stream,
        generation=last.generation,
        undoes=last.seq,
    )
    _keep(conn, last.sentence_id, annotator_id, standing)
    conn.execute(_END_LEASE, {"of": last.sentence_id, "by": annotator_id})
    if not standing or standing[-1].kind == "skip":
        conn.execute(
            insert(leases).values(
                sentence_id=last.sentence_id, annotator_id=annotator_id, stream=last.stream, at=now
            )
        )
    refresh(conn, last.sentence_id)
    return event


def live(own: Iterable[Event]) -> list[Event]:
    """Of one annotator's events on one sentence, the answers that no undo has cancelled; the last one is what they say now."""
    standing: list[Event] = []
    for event in own:
        if event.kind in _LIVE:
            standing.append(event)
        elif event.kind == "undo":
            standing = [answer for answer in standing if answer.seq != event.undoes]
    return standing


def history(conn: Connection, sentence_id: str, annotator_id: int | None = None) -> list[Event]:
    """The events of one sentence, of all annotators or one, in order."""
    if annotator_id is None:
        found = conn.execute(_HISTORY, {"of": sentence_id})
    else:
        found = conn.execute(_OWN_HISTORY, {"of": sentence_id, "by": annotator_id})
    return [as_event(row) for row in found]


def refresh(conn: Connection, sentence_id: str | None = None) -> None:
    """Derive whose turn a sentence is, or every sentence, from the answers and leases there are."""
    if sentence_id is None:
        conn.execute(_REFRESH)
    else:
        conn.execute(_REFRESH_ONE, {"of": sentence_id})


def rebuild(conn: Connection) -> None:
    """Throw away what is derived and replay every event: what is there afterwards must be what was there before."""
    conn.execute(delete(current))
    touched = select(events.c.sentence_id, events.c.annotator_id).distinct()
    for sentence_id, annotator_id in conn.execute(touched).all():
        _keep(conn, sentence_id, annotator_id, live(history(conn, sentence_id, annotator_id)))
    refresh(conn)


def as_event(row: Row[Any]) -> Event:
    """An event out of its row."""
    return Event(
        row.seq,
        row.sentence_id,
        row.annotator_id,
        row.kind,
        marks_of(row.spans),
        ranges_of(row.sure),
        loads(row.old),
        row.seconds,
        row.at,
        row.stream,
        row.generation,
        row.undoes,
    )


def marks_of(text: str) -> tuple[Mark, ...]:
    """Marks out of their column."""
    return tuple(Mark(*mark) for mark in loads(text))


def ranges_of(text: str | None) -> Ranges | None:
    """The sure part out of its column."""
    return None if text is None else tuple((start, end) for start, end in loads(text))


def _place(conn: Connection, sentence_id: str) -> Any:
    """Length, stream, state and generation of a sentence, which must exist."""
    found = conn.execute(_PLACE, {"of": sentence_id}).first() if is_key(sentence_id) else None
    if found is None:
        raise NotFoundError("sentence", sentence_id)
    return found


def _append(
    conn: Connection,
    *,
    marks: Sequence[Mark],
    sure: Ranges | None,
    old: Event | None,
    **values: Any,
) -> Event:
    before = (
        None if old is None else {"spans": [list(mark) for mark in old.spans], "sure": old.sure}
    )
    columns = {
        **values,
        "spans": dumps([list(mark) for mark in marks]),
        "sure": None if sure is None else dumps(sure),
        "old": None if before is None else dumps(before),
    }
    try:
        (seq,) = conn.execute(insert(events), columns).inserted_primary_key or (0,)
    except IntegrityError as error:  # the sentence is there, so it is the annotator
        raise NotFoundError("annotator", values["annotator_id"]) from error
    return Event(seq=seq, spans=tuple(marks), sure=sure, old=before, **values)


def _keep(conn: Connection, sentence_id: str, annotator_id: int, standing: Sequence[Event]) -> None:
    """Write down what an annotator says now: the last of the answers that stand."""
    key = {"of": sentence_id, "by": annotator_id}
    if not standing:
        conn.execute(_FORGET, key)
        return
    since = next((event.seq for event in standing if event.kind == "label"), standing[0].seq)
    new = {"seq": standing[-1].seq, "since": since, "kind": standing[-1].kind}
    if (
        conn.execute(
            _RENEW, {**key, **{f"new_{name}": value for name, value in new.items()}}
        ).rowcount
        == 0
    ):
        conn.execute(
            insert(current), {"sentence_id": sentence_id, "annotator_id": annotator_id, **new}
        )


def _same(
    event: Event, annotator_id: int, kind: str, marks: Sequence[Mark], sure: Ranges | None
) -> bool:
    return (event.annotator_id, event.kind, event.spans, event.sure) == (
        annotator_id,
        kind,
        tuple(marks),
        sure,
    )
