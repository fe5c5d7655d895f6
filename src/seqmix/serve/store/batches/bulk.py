"""Answers that a model gave and a person accepted many at a time: a stream of their own.

They count and are exported, but no model learns from them, nobody is asked for a second answer to
them, and they belong to no audit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlalchemy import Connection, Select, func, insert, select

from seqmix.serve.store.derived import REFRESH_ALL
from seqmix.serve.store.records import BULK, Mark, checked_marks, dumps, is_key
from seqmix.serve.store.schema import current, events, queue, sentences
from seqmix.serve.store.sentences import paged
from seqmix.serve.store.store import Store

ACCEPT = "accept"  # the kind of their batches
_PAGE = 100  # sentences per transaction: a few milliseconds, as somebody may be waiting to save
_UNTOUCHED = (  # nobody has answered, skipped or opened it
    queue.c.state == "free",
    queue.c.stream == "active",
    ~select(current.c.seq).where(current.c.sentence_id == queue.c.sentence_id).exists(),
)
GIVEN = select(events.c.sentence_id).where(
    events.c.stream == BULK,
    # subtle: by its sentence, since `gold` has no index: one look for each, not one at the whole
    select(queue.c.gold)
    .where(queue.c.sentence_id == events.c.sentence_id, queue.c.gold == events.c.seq)
    .exists(),
)


def untouched(store: Store) -> set[str]:
    """Return the open sentences that nobody has answered, skipped or opened."""
    with store.reading() as conn:
        return set(conn.execute(select(queue.c.sentence_id).where(*_UNTOUCHED)).scalars())


def bulk_ids(store: Store) -> set[str]:
    """Return the sentences whose answer was accepted in bulk and corrected by nobody since."""
    with store.reading() as conn:
        return set(conn.execute(GIVEN).scalars())


def count_bulk(conn: Connection) -> int:
    """Return how many sentences `bulk_ids` names."""
    return int(conn.execute(select(func.count()).select_from(GIVEN.subquery())).scalar_one())


def accept_answers(
    store: Store,
    batch: int,
    annotator_id: int,
    answers: Iterable[tuple[str, Sequence[Mark]]],
    pause: Callable[[], None] = lambda: time.sleep(0.01),
) -> int:
    """Answer sentences that are still untouched, as part of a batch; return how many were.

    Others save between its short transactions.
    """
    accepted, now = 0, time.time()
    for page in paged(answers, _PAGE):
        marks = {id: spans for id, spans in page if is_key(id)}
        with store.writing() as conn:
            accepted += _accept(conn, store, batch, annotator_id, marks, now)
        pause()
    return accepted


def _accept(
    conn: Connection,
    store: Store,
    batch: int,
    annotator_id: int,
    marks: Mapping[str, Sequence[Mark]],
    now: float,
) -> int:
    places = (
        select(queue.c.sentence_id, queue.c.generation, sentences.c.length)
        .join(sentences, sentences.c.id == queue.c.sentence_id)
        .where(queue.c.sentence_id.in_(marks), *_UNTOUCHED)
    )
    tags = store.read_tags()
    rows = [
        {
            "sentence_id": place.sentence_id,
            "annotator_id": annotator_id,
            "kind": "label",
            "spans": dumps(
                [list(m) for m in checked_marks(marks[place.sentence_id], place.length, tags)]
            ),
            "seconds": 0.0,
            "at": now,
            "stream": BULK,
            "generation": place.generation if place.generation >= 0 else None,
            "batch": batch,
        }
        for place in conn.execute(places).all()
    ]
    if rows:
        ids = [row["sentence_id"] for row in rows]
        conn.execute(insert(events), rows)
        columns = (events.c.sentence_id, events.c.annotator_id, events.c.seq, events.c.seq)
        answers: Select[tuple[str, int, int, int, str]] = select(*columns, events.c.kind).where(
            events.c.batch == batch, events.c.sentence_id.in_(ids)
        )
        names = ["sentence_id", "annotator_id", "seq", "since", "kind"]
        conn.execute(insert(current).from_select(names, answers))
        conn.execute(REFRESH_ALL.where(queue.c.sentence_id.in_(ids)))
    return len(rows)
