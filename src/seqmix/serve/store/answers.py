"""Answers come in: each is checked, appended as an event, and what follows from it is derived."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    func,
    select,
)

from seqmix.errors import DataError, NotFoundError, StaleError, TagError
from seqmix.serve.store.derived import ANSWERS, SETTLING, refresh, uncancelled, write_current
from seqmix.serve.store.events import append, history, with_tags_of_now
from seqmix.serve.store.records import (
    BULK,
    Event,
    Mark,
    Ranges,
    checked_marks,
    checked_seconds,
    checked_sure,
    is_key,
)
from seqmix.serve.store.schema import events, leases, queue, sentences
from seqmix.serve.store.store import Store

# Statements are built once: building one takes SQLAlchemy longer than SQLite takes to run it.
_PLACE = (
    select(sentences.c.length, queue.c.stream, queue.c.state, queue.c.generation)
    .join_from(sentences, queue)
    .where(sentences.c.id == bindparam("sentence"))
)
_IS_LEASE = and_(
    leases.c.sentence_id == bindparam("sentence"), leases.c.annotator_id == bindparam("annotator")
)
_TAKEN = {  # why a sentence is not this annotator's, by its state, or its stream
    "seed": "this sentence was labeled before the project; an admin can decide otherwise",
    "held": "another annotator has this sentence open; continue with the next one",
    "done": "another annotator has answered this sentence; an admin can decide otherwise",
    "discard": "another annotator has discarded this sentence; continue with the next one",
}
_LEASE, END_LEASE = select(leases.c.stream).where(_IS_LEASE), delete(leases).where(_IS_LEASE)


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
    batch: int | None = None,
    shown: Mapping[str, Any] | None = None,
    tag_change: int | None = None,
) -> Event:
    """Append a label, skip, discard or adjudication; the same answer sent twice is one event.

    A `version` that is not `answer_version`'s raises StaleError and saves nothing.
    `tag_change` is the last change of the tags that the annotator knows (default: all).
    """
    key = {"sentence": sentence_id, "annotator": annotator_id}
    with store.writing() as conn:
        place = _place_of(conn, sentence_id)
        spans, part = _checked(store, kind, marks, sure, place.length, tag_change)
        log = history(conn, sentence_id, None if kind == "adjudicate" else annotator_id)
        before = with_tags_of_now(log, store.tag_history())
        if repeated := _repeated(before, version, (annotator_id, kind, spans, part)):
            return repeated
        answers = uncancelled(mine := [e for e in before if e.annotator_id == annotator_id])
        lease = _lease_of(conn, key, kind, place, answers, version)
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
            stream=stream or lease or _stream(mine, place.stream, batch is not None),
            generation=place.generation if place.generation >= 0 else None,
            batch=batch,
            shown=shown,
        )
        if kind != "adjudicate":
            conn.execute(END_LEASE, key)
            write_current(conn, sentence_id, annotator_id, [*answers, event])
        refresh(conn, sentence_id)
        return event


def _stream(mine: Sequence[Event], place: str, in_batch: bool) -> str:
    """Return the stream of an answer that corrects another.

    Who corrects a bulk answer has looked at it, unless many are corrected in one go.
    """
    return mine[-1].stream if mine and (in_batch or mine[-1].stream != BULK) else place


def _place_of(conn: Connection, sentence_id: str) -> Row[Any, Any, Any, Any]:
    key = {"sentence": sentence_id}
    place = conn.execute(_PLACE, key).first() if is_key(sentence_id) else None
    if place is None:
        raise NotFoundError("sentence", sentence_id)
    return place


def _renamed(store: Store, marks: Iterable[Any], tag_change: int) -> tuple[Mark, ...]:
    """Return marks with the tags of now; refuse one whose tag was split."""
    tags = store.tag_history()
    renamed, opened = tags.marks([Mark(*mark) for mark in marks], tags.at_change(tag_change))
    for mark in opened:
        raise TagError(
            f"the tag {mark.tag} is now one of {', '.join(filter(None, mark.choices))};"
            " choose for each of its spans",
            text=mark.tag,
        )
    return renamed


def _checked(
    store: Store,
    kind: str,
    marks: Iterable[Any],
    sure: Iterable[Any] | None,
    length: int,
    tag_change: int | None,
) -> tuple[tuple[Mark, ...], Ranges | None]:
    if kind not in (*ANSWERS, "adjudicate"):
        raise DataError(
            "expected an answer of the kind label, skip, discard or adjudicate", text=kind
        )
    if kind in ("skip", "discard"):
        return (), None
    marks = marks if tag_change is None else _renamed(store, marks, tag_change)
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
        "this sentence has been answered since it was shown here; load it again",
        last.seq if last else 0,
    )


def _content(event: Event) -> tuple[object, ...]:
    return event.annotator_id, event.kind, event.spans, event.sure


def _lease_of(
    conn: Connection,
    key: Mapping[str, Any],
    kind: str,
    place: Row[Any, Any, Any, Any],
    answers: Sequence[Event],
    version: int,
) -> str | None:
    """Return the stream of the annotator's lease; refuse a sentence that is somebody else's.

    An annotator who has answered it may correct that answer at any time.
    """
    lease: str | None = conn.execute(_LEASE, key).scalar()
    answered = bool(answers) and answers[-1].kind in SETTLING
    if kind != "adjudicate" and lease is None and place.state != "free" and not answered:
        raise StaleError(_TAKEN["seed" if place.stream == "seed" else place.state], version)
    return lease


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
