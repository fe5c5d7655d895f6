"""Small stores to test with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from seqmix.data.text import from_text
from seqmix.serve.store.records import Annotator
from seqmix.serve.store.schema import current, queue
from seqmix.serve.store.store import Store, create_store

TAGS = ("PER", "LOC")


def small_store(
    url: Any, n: int = 10, people: Sequence[str] = ("anna", "bo"), audit: float = 0.0
) -> Store:
    """A store with n sentences of five tokens, s:0 to s:n-1, and some annotators; the first is the admin."""

    def fill(store: Store) -> None:
        store.add_sentences(from_text(f"s:{i}", f"Lena {i} left Oslo .") for i in range(n))
        store.reserve_audit(audit)

    store = create_store(url, TAGS, fill)
    for i, name in enumerate(people):
        store.add_annotator(name, admin=i == 0)
    return store


def person(store: Store, name: str) -> Annotator:
    found = store.annotator(name)
    assert found is not None
    return found


def derived(store: Store) -> tuple[list[Any], list[Any]]:
    """What is derived from the events: the table `current`, and state, sole and gold of every sentence."""
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
