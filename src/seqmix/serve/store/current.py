"""What is said now: answers that count, and how many there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Select, func, select

from seqmix.serve.store import annotators as people
from seqmix.serve.store.answers import as_event
from seqmix.serve.store.records import Answer, Counts, Work, is_key, loads
from seqmix.serve.store.schema import annotators, current, events, meta, queue

_MOST = 1000  # answers to a page


def answers(conn: Connection, sentence_id: str | None, overridden: bool) -> list[Answer]:
    """Adjudications, then what each annotator says, those who answered first in front."""
    if sentence_id is not None and not is_key(sentence_id):
        return []
    where = () if sentence_id is None else (events.c.sentence_id == sentence_id,)
    judged = (
        _said()
        .join(queue, queue.c.gold == events.c.seq)
        .where(events.c.kind == "adjudicate", *where)
    )
    over = _read(conn, judged.order_by(events.c.seq))
    own = _read(
        conn,
        _said()
        .join(current, current.c.seq == events.c.seq)
        .where(*where)
        .order_by(current.c.since),
    )
    gone = set() if overridden else {answer.sentence_id for answer in over}
    return over + [answer for answer in own if answer.sentence_id not in gone]


def gold(conn: Connection, streams: Collection[str]) -> list[Answer]:
    """The answer that counts of every answered sentence of some streams, in the random order."""
    wanted = _said().join(queue, queue.c.gold == events.c.seq).where(queue.c.stream.in_(streams))
    return _read(conn, wanted.order_by(queue.c.lot))


def unread(conn: Connection, annotator_id: int, ids: Collection[str]) -> set[str]:
    """Of these sentences those that others answered and this annotator did not: they may be asked yet, and must not know."""
    said = conn.execute(
        select(current.c.sentence_id, current.c.annotator_id).where(current.c.sentence_id.in_(ids))
    ).all()
    return {row.sentence_id for row in said} - {
        row.sentence_id for row in said if row.annotator_id == annotator_id
    }


def history(conn: Connection, annotator_id: int, n: int) -> list[Answer]:
    """An annotator's answers that count, the newest first."""
    said = (
        _said()
        .join(current, current.c.seq == events.c.seq)
        .where(current.c.annotator_id == annotator_id)
    )
    return _read(conn, said.order_by(current.c.seq.desc()).limit(max(0, min(n, _MOST))))


def counts(conn: Connection, annotator_id: int | None) -> Counts:
    """How far the project is."""
    label = current.c.kind == "label"
    by_state = select(queue.c.stream, queue.c.state, func.count()).group_by(
        queue.c.stream, queue.c.state
    )
    by_state = by_state.where(
        queue.c.stream.in_(("active", "audit", "seed")), queue.c.state.in_(("held", "done"))
    )  # not the many free
    pool = loads(conn.execute(select(meta.c.value).where(meta.c.key == "pool")).scalar())
    n: Mapping[tuple[str, str], int] = {
        (stream, state): size for stream, state, size in conn.execute(by_state)
    }
    twice = (
        select(current.c.sentence_id)
        .where(label)
        .group_by(current.c.sentence_id)
        .having(func.count() > 1)
        .subquery()
    )
    skipped = select(func.count(current.c.sentence_id.distinct())).join_from(
        current, queue, queue.c.sentence_id == current.c.sentence_id
    )
    return Counts(
        sentences=pool or 0,
        labeled=n.get(("active", "done"), 0) + n.get(("audit", "done"), 0),
        audit=n.get(("audit", "done"), 0),
        active=n.get(("active", "done"), 0),
        held=n.get(("active", "held"), 0) + n.get(("audit", "held"), 0),
        skipped=int(
            conn.execute(
                skipped.where(current.c.kind == "skip", queue.c.state != "done")
            ).scalar_one()
        ),
        overlap=int(conn.execute(select(func.count()).select_from(twice)).scalar_one()),
        seed=n.get(("seed", "done"), 0),
        mine=int(
            conn.execute(
                select(func.count()).where(label, current.c.annotator_id == annotator_id)
            ).scalar_one()
        ),
        events=int(conn.execute(select(func.coalesce(func.max(events.c.seq), 0))).scalar_one()),
    )


def work(conn: Connection) -> list[Work]:
    """Who did how much."""
    now = select(current.c.annotator_id, current.c.kind, func.count()).group_by(
        current.c.annotator_id, current.c.kind
    )
    spent = select(events.c.annotator_id, func.sum(events.c.seconds)).group_by(
        events.c.annotator_id
    )
    said: Mapping[tuple[int, str], int] = {(id, kind): n for id, kind, n in conn.execute(now)}
    seconds: Mapping[int, float] = {id: float(total) for id, total in conn.execute(spent)}
    return [
        Work(
            who,
            said.get((who.id, "label"), 0),
            said.get((who.id, "skip"), 0),
            seconds.get(who.id, 0.0),
        )
        for who in people.everybody(conn)
    ]


def _said() -> Select[Any]:
    return select(events, annotators.c.name.label("who")).join(
        annotators, annotators.c.id == events.c.annotator_id
    )


def _read(conn: Connection, wanted: Select[Any]) -> list[Answer]:
    found = []
    for row in conn.execute(wanted):
        said = as_event(row)
        found.append(
            Answer(
                said.seq,
                said.sentence_id,
                said.annotator_id,
                row.who,
                said.kind,
                said.spans,
                said.sure,
                said.seconds,
                said.at,
                said.stream,
            )
        )
    return found
