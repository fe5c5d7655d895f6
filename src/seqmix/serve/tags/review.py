"""Spans whose tag was split: rows of the table of doubts, until a person has chosen a tag.

A sentence is in doubt as long as the answer that counts has open spans, so a corrected answer ends
the doubt and its undo brings it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, or_, select

from seqmix.serve.store.records import dumps
from seqmix.serve.store.schema import doubts, queue
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import OpenMark, TagHistory
from seqmix.serve.tags.touched import answers_with, names_where, seeds_with

SPLIT = "split"  # the kind of these doubts


def write_split_doubts(store: Store) -> int:
    """Write down which sentences have open spans as of now; return how many."""
    with store.writing() as conn:
        rows = list(_rows(conn, store.tag_history()))
        conn.execute(delete(doubts).where(doubts.c.kind == SPLIT))
        if rows:
            conn.execute(insert(doubts), rows)
        return len(rows)


def count_open(store: Store) -> int:
    """Return how many sentences wait for a person to choose a tag."""
    alive = or_(doubts.c.seq == queue.c.gold, and_(doubts.c.seq.is_(None), queue.c.gold.is_(None)))
    waiting = (
        select(func.count())
        .select_from(doubts)
        .join(queue, queue.c.sentence_id == doubts.c.sentence_id)
        .where(doubts.c.kind == SPLIT, doubts.c.kept_at.is_(None), alive)
    )
    with store.reading() as conn:
        return int(conn.execute(waiting).scalar_one())


def _rows(conn: Connection, history: TagHistory) -> Iterator[dict[str, Any]]:
    names = names_where(history, lambda name, place: len(history.meanings(name, place)) > 1)
    for answer in answers_with(conn, names):
        opened = history.marks(answer.marks, history.at_event(answer.seq))[1]
        if answer.counts and opened:
            yield _row(answer.sentence_id, answer.seq, opened)
    for seed in seeds_with(conn, names):
        opened = history.open_rows(seed.rows, history.at_change(seed.tag_change))
        if opened:
            yield _row(seed.sentence_id, None, opened)


def _row(sentence_id: str, seq: int | None, opened: tuple[OpenMark, ...]) -> dict[str, Any]:
    details = {"open": [mark._asdict() for mark in opened]}
    return {
        "sentence_id": sentence_id,
        "kind": SPLIT,
        "seq": seq,
        "score": 1.0,
        "details": dumps(details),
    }
