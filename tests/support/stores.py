"""Small stores to test with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select, text

from seqmix.data.sentence import Sentence
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.derived import REFRESH_ALL, uncancelled, write_current
from seqmix.serve.store.events import history
from seqmix.serve.store.queue import unlabeled_ids
from seqmix.serve.store.records import Annotator, Mark, loads
from seqmix.serve.store.schema import current, events, queue
from seqmix.serve.store.sentences import add_sentences, read_sentences, reserve_audit
from seqmix.serve.store.store import Store, create_store

TAGS = ("PER", "LOC")
PER, LOC = Mark(0, 1, "PER"), Mark(3, 4, "LOC")  # of the sentences of a small store


def small_store(
    url: Any, n: int = 10, people: Sequence[str] = ("anna", "bo"), audit: float = 0.0
) -> Store:
    """A store with n sentences of five tokens, s:0 to s:n-1, and annotators; the first is admin."""

    def fill(store: Store) -> None:
        add_sentences(
            store, (Sentence.from_text(f"Lena {i} left Oslo .", f"s:{i}") for i in range(n))
        )
        reserve_audit(store, audit)

    store = create_store(url, TAGS, fill)
    for i, name in enumerate(people):
        add_annotator(store, name, admin=i == 0)
    return store


def person(store: Store, name: str) -> Annotator:
    found = find_annotator(store, name)
    assert found is not None
    return found


def derived(store: Store) -> tuple[list[Any], list[Any]]:
    """What is derived from the events: the table `current`; state, sole and gold by sentence."""
    with store.reading() as conn:
        own = conn.execute(
            select(current).order_by(current.c.sentence_id, current.c.annotator_id)
        ).all()
        places = conn.execute(
            select(queue.c.sentence_id, queue.c.state, queue.c.sole, queue.c.gold).order_by(
                queue.c.sentence_id
            )
        ).all()
    return [tuple(row) for row in own], [tuple(row) for row in places]


def find_sentence(store: Store, id: str) -> Sentence | None:
    return next(read_sentences(store, [id]), None)


def unlabeled(store: Store) -> list[Sentence]:
    """The pool in the order of the text."""
    ids = set(unlabeled_ids(store))
    return [sentence for sentence in read_sentences(store) if sentence.id in ids]


def count_sentences(store: Store) -> int:
    return sum(1 for _ in read_sentences(store))


def plan(store: Store, statement: Any) -> list[str]:
    """How SQLite would run a statement: a line for each table it scans or searches."""
    with store.reading() as conn:
        sql = statement.compile(conn, compile_kwargs={"literal_binds": True})
        return [row[-1] for row in conn.execute(text(f"EXPLAIN QUERY PLAN {sql}"))]


def suggestion_of(store: Store, id: str) -> tuple[Any, int | None]:
    """The suggestion a page would show, and the generation that made it."""
    with store.reading() as conn:
        row = conn.execute(select(queue).where(queue.c.sentence_id == id)).first()
    if row is None or row.stream != "active" or row.generation < 0:
        return None, None
    return loads(row.suggestion), row.generation


def rebuild(store: Store) -> None:
    """Delete what is derived and replay every event, which changes nothing."""
    pairs = select(events.c.sentence_id, events.c.annotator_id).distinct()
    with store.writing() as conn:
        conn.execute(delete(current))
        for sentence_id, annotator_id in conn.execute(pairs).all():
            answers = uncancelled(history(conn, sentence_id, annotator_id))
            write_current(conn, sentence_id, annotator_id, answers)
        conn.execute(REFRESH_ALL)
