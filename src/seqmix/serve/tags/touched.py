"""Which answers and labels hold certain tags, asked of the database by the names they were given.

The database compares text, so what it returns may hold a tag in part only; the caller maps and
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, or_, select

from seqmix.data.sentence import Row
from seqmix.serve.store.events import is_current, parse_marks
from seqmix.serve.store.records import Mark, dumps, loads
from seqmix.serve.store.schema import events, queue, sentences
from seqmix.serve.store.tags.history import TagHistory

# subtle: by the sentence, since `gold` has no index: one look for each, not one at the whole
COUNTS = (
    select(queue.c.sentence_id)
    .where(queue.c.sentence_id == events.c.sentence_id, queue.c.gold == events.c.seq)
    .exists()
)


class Given(NamedTuple):
    """An answer with the tags it was given, and whether it is the one that counts."""

    seq: int
    sentence_id: str
    annotator_id: int
    marks: tuple[Mark, ...]
    counts: bool


class Seeded(NamedTuple):
    """A sentence with labels from before the project, the last change of the tags they knew."""

    sentence_id: str
    rows: list[Row]
    tag_change: int


def names_where(history: TagHistory, is_wanted: Callable[[str, int], bool]) -> set[str]:
    """Return the names, of now or earlier, that are wanted as given at some place."""
    names = {name for c in history.changes for name in (*c.details.get("tags", ()), *c.into, c.tag)}
    places = range(len(history.changes) + 1)
    return {name for name in names if any(is_wanted(name, place) for place in places)}


def answers_with(conn: Connection, names: Collection[str]) -> Iterator[Given]:
    """Yield the current answers and adjudications that were given one of these names."""
    if not names:
        return
    query = select(
        events.c.seq,
        events.c.sentence_id,
        events.c.annotator_id,
        events.c.spans,
        COUNTS.label("counts"),
    ).where(or_(is_current(), COUNTS), _holds(events.c.spans, [dumps(name) for name in names]))
    for row in conn.execute(query.order_by(events.c.seq)):
        marks = parse_marks(row.spans)
        yield Given(row.seq, row.sentence_id, row.annotator_id, marks, bool(row.counts))


def seeds_with(conn: Connection, names: Collection[str]) -> Iterator[Seeded]:
    """Yield the sentences without an answer whose labels were given one of these names."""
    if not names:
        return
    texts = [dumps(prefix + name) for name in names for prefix in ("B-", "I-")]
    query = (
        select(sentences.c.id, sentences.c.seed, sentences.c.tag_change)
        .join_from(sentences, queue)
        .where(queue.c.gold.is_(None), _holds(sentences.c.seed, texts))
    )
    for row in conn.execute(query.order_by(sentences.c.position)):
        yield Seeded(row.id, loads(row.seed), row.tag_change or 0)


def _holds(column: Column[Any], texts: Collection[str]) -> Any:
    return or_(*(column.contains(text, autoescape=True) for text in texts))
