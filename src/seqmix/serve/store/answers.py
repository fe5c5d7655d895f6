"""Answers in, current state out.

The table `current` and the derived columns of `queue` always hold what a replay of the events would
give; they are kept only so that the next sentence can be shown without a replay.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
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
from sqlalchemy.orm import aliased

from seqmix.errors import DataError, NotFoundError, StaleError
from seqmix.serve.store.events import append, as_event, history
from seqmix.serve.store.records import (
    Event,
    Mark,
    Ranges,
    checked_marks,
    checked_seconds,
    checked_sure,
    is_key,
)
from seqmix.serve.store.schema import current, events, leases, queue, sentences
from seqmix.serve.store.store import Store

_ANSWERS = ("label", "skip")  # the kinds of event that an undo can cancel

# Statements are built once: building one takes SQLAlchemy longer than SQLite takes to run it.
_PLACE = (
    select(sentences.c.length, queue.c.stream, queue.c.state, queue.c.generation)
    .join_from(sentences, queue)
    .where(sentences.c.id == bindparam("sentence"))
)
_IS_LEASE = and_(
    leases.c.sentence_id == bindparam("sentence"), leases.c.annotator_id == bindparam("annotator")
)
_LEASE, _END_LEASE = select(leases.c.stream).where(_IS_LEASE), delete(leases).where(_IS_LEASE)
_IS_CURRENT = and_(
    current.c.sentence_id == bindparam("sentence"), current.c.annotator_id == bindparam("annotator")
)
_DELETE_CURRENT = delete(current).where(_IS_CURRENT)
_UPDATE_CURRENT = (
    update(current)
    .where(_IS_CURRENT)
    .values({name: bindparam(f"new_{name}") for name in ("seq", "since", "kind")})
)


def _refresh_statement() -> Update:
    labels = and_(current.c.sentence_id == queue.c.sentence_id, current.c.kind == "label")
    first = select(current.c.seq).where(labels).order_by(current.c.since).limit(1).scalar_subquery()
    judged = and_(events.c.sentence_id == queue.c.sentence_id, events.c.kind == "adjudicate")
    decided = select(func.max(events.c.seq)).where(judged).scalar_subquery()
    is_open = select(leases.c.at).where(leases.c.sentence_id == queue.c.sentence_id).exists()
    once = select(func.count()).select_from(current).where(labels).scalar_subquery() == 1
    alone = select(func.max(current.c.annotator_id)).where(labels).scalar_subquery()
    gold = func.coalesce(decided, first)
    return update(queue).values(
        gold=gold,
        sole=case((and_(queue.c.stream == "active", once, decided.is_(None), ~is_open), alone)),
        state=case(
            (or_(queue.c.stream == "seed", gold.is_not(None)), "done"),
            (is_open, "held"),
            else_="free",
        ),
    )


_REFRESH_ALL = _refresh_statement()
_REFRESH = _REFRESH_ALL.where(queue.c.sentence_id == bindparam("sentence"))


def save_answer(
    store: Store,
    sentence_id: str,
    annotator_id: int,
    kind: str,
    marks: Iterable[Any] = (),
    sure: Iterable[Any] | None = None,
    seconds: float = 0.0,
    version: int = 0,
    stream: str | None = None,
    now: float | None = None,
) -> Event:
    """Append a label, skip or adjudication; the same answer sent twice is one event.

    If `version` is not that of `answer_version`, StaleError is raised and nothing is saved.
    """
    if kind not in (*_ANSWERS, "adjudicate"):
        raise DataError("expected an answer of the kind label, skip or adjudicate", text=kind)
    key = {"sentence": sentence_id, "annotator": annotator_id}
    with store.writing() as conn:
        place = conn.execute(_PLACE, key).first() if is_key(sentence_id) else None
        if place is None:
            raise NotFoundError("sentence", sentence_id)
        spans, part = _checked(store, kind, marks, sure, place.length)
        before = history(conn, sentence_id, None if kind == "adjudicate" else annotator_id)
        if (repeated := _repeated(before, version, (annotator_id, kind, spans, part))) is not None:
            return repeated
        mine = [event for event in before if event.annotator_id == annotator_id]
        answers = uncancelled(mine)
        lease = conn.execute(_LEASE, key).scalar()
        if kind != "adjudicate" and lease is None and place.state != "free":
            _refuse_unless_labeled(answers, version)
        event = append(
            conn,
            sentence_id=sentence_id,
            annotator_id=annotator_id,
            kind=kind,
            marks=spans,
            sure=part,
            previous=answers[-1] if answers else None,
            seconds=checked_seconds(seconds),
            at=time.time() if now is None else now,
            stream=stream or lease or (mine[-1].stream if mine else place.stream),
            generation=place.generation if place.generation >= 0 else None,
        )
        if kind != "adjudicate":
            conn.execute(_END_LEASE, key)
            _write_current(conn, sentence_id, annotator_id, [*answers, event])
        refresh(conn, sentence_id)
        return event


def _checked(
    store: Store, kind: str, marks: Iterable[Any], sure: Iterable[Any] | None, length: int
) -> tuple[tuple[Mark, ...], Ranges | None]:
    if kind == "skip":
        return (), None
    spans = checked_marks(marks, length, store.read_tags())
    return spans, checked_sure(sure, spans, length)


def _repeated(before: Sequence[Event], version: int, content: object) -> Event | None:
    """Return the last event if this answer repeats it; refuse others to an old version."""
    last = before[-1] if before else None
    if version == (last.seq if last else 0):
        return None
    version_before = before[-2].seq if len(before) > 1 else 0
    if last and version == version_before and content == _content(last):
        return last
    raise StaleError(
        "this sentence was answered since it was shown here; load it again", last.seq if last else 0
    )


def _content(event: Event) -> tuple[object, ...]:
    return event.annotator_id, event.kind, event.spans, event.sure


def _refuse_unless_labeled(answers: Sequence[Event], version: int) -> None:
    """Refuse an answer to a sentence that is somebody else's, unless it corrects a label."""
    if not answers or answers[-1].kind != "label":
        raise StaleError(
            "another annotator has this sentence now; continue with the next one", version
        )


def undo_answer(
    store: Store, annotator_id: int, seq: int | None = None, now: float | None = None
) -> Event | None:
    """Cancel an answer or skip of the annotator (by default the last one) and reopen the sentence.

    Cancelling the same answer twice is one event. None: there is nothing to undo.
    """
    with store.writing() as conn:
        at = time.time() if now is None else now
        seq = last_answer(store, annotator_id) if seq is None else seq
        if seq is None:
            return None
        row = conn.execute(
            select(events).where(events.c.seq == seq, events.c.kind.in_(_ANSWERS))
        ).first()
        if row is None or row.annotator_id != annotator_id:
            raise NotFoundError("answer of yours", seq)
        earlier = conn.execute(select(events).where(events.c.undoes == seq)).first()
        if earlier is not None:
            return as_event(earlier)
        return _cancel(conn, as_event(row), at)


def _cancel(conn: Connection, cancelled: Event, at: float) -> Event:
    id, annotator_id = cancelled.sentence_id, cancelled.annotator_id
    *remaining, newest = uncancelled(history(conn, id, annotator_id))
    if newest.seq != cancelled.seq:
        raise StaleError(
            "this answer was corrected since; take back the correction first", newest.seq
        )
    event = append(
        conn,
        sentence_id=id,
        annotator_id=annotator_id,
        kind="undo",
        marks=remaining[-1].spans if remaining else (),
        sure=remaining[-1].sure if remaining else None,
        previous=cancelled,
        seconds=0.0,
        at=at,
        stream=cancelled.stream,
        generation=cancelled.generation,
        undoes=cancelled.seq,
    )
    _write_current(conn, id, annotator_id, remaining)
    conn.execute(_END_LEASE, {"sentence": id, "annotator": annotator_id})
    if not remaining or remaining[-1].kind == "skip":
        lease = {"annotator_id": annotator_id, "stream": cancelled.stream, "at": at}
        conn.execute(insert(leases).values(sentence_id=id, **lease))
    refresh(conn, id)
    return event


def last_answer(store: Store, annotator_id: int) -> int | None:
    """Return the seq of the annotator's last answer or skip that no undo has cancelled."""
    later = aliased(events)
    cancelled = select(later.c.seq).where(later.c.undoes == events.c.seq).exists()
    answers = select(events.c.seq).where(
        events.c.annotator_id == annotator_id, events.c.kind.in_(_ANSWERS), ~cancelled
    )
    with store.reading() as conn:
        return conn.execute(answers.order_by(events.c.seq.desc()).limit(1)).scalar()


def answer_version(store: Store, sentence_id: str, annotator_id: int | None = None) -> int:
    """Return the seq of the annotator's last event on a sentence, 0 without one.

    Without an annotator it is anybody's last event, which an adjudication needs.
    """
    if not is_key(sentence_id):
        return 0
    last = select(func.coalesce(func.max(events.c.seq), 0)).where(
        events.c.sentence_id == sentence_id
    )
    if annotator_id is not None:
        last = last.where(events.c.annotator_id == annotator_id, events.c.kind != "adjudicate")
    with store.reading() as conn:
        return int(conn.execute(last).scalar_one())


def uncancelled(log: Iterable[Event]) -> list[Event]:
    """Return the answers that no undo has cancelled, of one annotator's events on one sentence.

    label 1, label 2, undo 2 -> label 1
    """
    answers: list[Event] = []
    for event in log:
        if event.kind in _ANSWERS:
            answers.append(event)
        elif event.kind == "undo":
            answers = [answer for answer in answers if answer.seq != event.undoes]
    return answers


def refresh(conn: Connection, sentence_id: str) -> None:
    """Derive whose turn a sentence is from its answers and leases."""
    conn.execute(_REFRESH, {"sentence": sentence_id})


def rebuild(store: Store) -> None:
    """Delete what is derived and replay every event; a test shows that nothing changes."""
    pairs = select(events.c.sentence_id, events.c.annotator_id).distinct()
    with store.writing() as conn:
        conn.execute(delete(current))
        for sentence_id, annotator_id in conn.execute(pairs).all():
            answers = uncancelled(history(conn, sentence_id, annotator_id))
            _write_current(conn, sentence_id, annotator_id, answers)
        conn.execute(_REFRESH_ALL)


def _write_current(
    conn: Connection, sentence_id: str, annotator_id: int, answers: Sequence[Event]
) -> None:
    """Keep the last of an annotator's uncancelled answers, and when the first label came."""
    key = {"sentence": sentence_id, "annotator": annotator_id}
    if not answers:
        conn.execute(_DELETE_CURRENT, key)
        return
    since = next((event.seq for event in answers if event.kind == "label"), answers[0].seq)
    new = {"seq": answers[-1].seq, "since": since, "kind": answers[-1].kind}
    changed = conn.execute(_UPDATE_CURRENT, {**key, **{f"new_{n}": v for n, v in new.items()}})
    if changed.rowcount == 0:
        row = {"sentence_id": sentence_id, "annotator_id": annotator_id, **new}
        conn.execute(insert(current), row)
