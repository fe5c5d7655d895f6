"""The history: every answer, skip, undo and adjudication, in order and never changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError

from seqmix.errors import NotFoundError
from seqmix.serve.store.records import PAGE, Event, Mark, Ranges, dumps, loads
from seqmix.serve.store.schema import current, events
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory

# Statements are built once: building one takes SQLAlchemy longer than SQLite takes to run it.
_HISTORY = (
    select(events).where(events.c.sentence_id == bindparam("sentence")).order_by(events.c.seq)
)
_HISTORY_BY = _HISTORY.where(
    events.c.annotator_id == bindparam("annotator"), events.c.kind != "adjudicate"
)


def read_events(store: Store, after: int = 0) -> Iterator[Event]:
    """Yield the whole history in order, or what came after an event."""
    while True:
        page_after = select(events).where(events.c.seq > after).order_by(events.c.seq).limit(PAGE)
        with store.reading() as conn:
            page = [as_event(row) for row in conn.execute(page_after)]
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].seq


def last_asked(store: Store, n: int) -> list[str]:
    """Return the n sentences of the active stream that people saw last, the newest at the end."""
    newest = func.max(events.c.seq)
    asked = (
        select(events.c.sentence_id)
        .where(events.c.stream == "active", events.c.kind.in_(("label", "skip", "discard")))
        .group_by(events.c.sentence_id)
        .order_by(newest.desc())
        .limit(n)
    )
    with store.reading() as conn:
        return list(conn.execute(asked).scalars())[::-1]


def history(conn: Connection, sentence_id: str, annotator_id: int | None = None) -> list[Event]:
    """Return the events of a sentence in order, by everybody or by one annotator."""
    if annotator_id is None:
        rows = conn.execute(_HISTORY, {"sentence": sentence_id})
    else:
        rows = conn.execute(_HISTORY_BY, {"sentence": sentence_id, "annotator": annotator_id})
    return [as_event(row) for row in rows]


def with_tags_of_now(log: Iterable[Event], tags: TagHistory) -> list[Event]:
    """Return events with the tags of now, without the spans that are open."""
    return [
        replace(event, spans=tags.marks(event.spans, tags.at_event(event.seq))[0]) for event in log
    ]


def append(
    conn: Connection,
    *,
    marks: Sequence[Mark],
    sure: Ranges | None,
    previous: Event | None,
    shown: Mapping[str, Any] | None = None,
    **values: Any,
) -> Event:
    """Add an event; `previous` is the annotator's answer that it replaces."""
    old = (
        None
        if previous is None
        else {"spans": [list(mark) for mark in previous.spans], "sure": previous.sure}
    )
    columns = {
        **values,
        "spans": dumps([list(mark) for mark in marks]),
        "sure": None if sure is None else dumps(sure),
        "old": None if old is None else dumps(old),
        "shown": dumps(shown) if shown else None,
    }
    try:
        (seq,) = conn.execute(insert(events), columns).inserted_primary_key or (0,)
    except IntegrityError as error:  # the sentence exists, so the annotator does not
        raise NotFoundError("annotator", values["annotator_id"]) from error
    return Event(seq=seq, spans=tuple(marks), sure=sure, old=old, shown=shown or None, **values)


def is_current() -> Any:
    """Return the condition for an event that is its annotator's answer of now.

    subtle: by its key, since `current.seq` has no index: one look for each, not one at the whole
    """
    here = current.c.sentence_id == events.c.sentence_id
    mine = current.c.annotator_id == events.c.annotator_id
    return select(current.c.seq).where(here, mine, current.c.seq == events.c.seq).exists()


def as_event(row: Row[Any]) -> Event:
    """Return the event that a row holds."""
    return Event(
        row.seq,
        row.sentence_id,
        row.annotator_id,
        row.kind,
        parse_marks(row.spans),
        parse_ranges(row.sure),
        loads(row.old),
        row.seconds,
        row.at,
        row.stream,
        row.generation,
        row.undoes,
        row.batch,
        loads(row.shown),
    )


def parse_marks(text: str) -> tuple[Mark, ...]:
    """Return the marks that a column holds."""
    return tuple(Mark(*mark) for mark in loads(text))


def parse_ranges(text: str | None) -> Ranges | None:
    """Return the sure part that a column holds; None means the whole sentence."""
    return None if text is None else tuple((start, end) for start, end in loads(text))
