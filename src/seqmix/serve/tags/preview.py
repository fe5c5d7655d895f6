"""What a change of the tags would touch, counted before it is made.

rename PER Person:  12 answers of 2 people with 15 spans, 3 sentences labeled before the project
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import select

from seqmix.data.sentence import Row
from seqmix.data.spans import OUTSIDE
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.records import dumps
from seqmix.serve.store.schema import sources
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory
from seqmix.serve.tags.changes import Wish, last_change, planned
from seqmix.serve.tags.touched import answers_with, names_where, seeds_with


@dataclass(frozen=True)
class Touched:
    """What would read otherwise after a change."""

    answers: int = 0
    spans: int = 0
    people: int = 0  # who gave the answers
    seed: int = 0  # sentences labeled before the project
    sources: tuple[str, ...] = ()  # that suggest the tag

    def in_words(self) -> str:
        """Return the counts as a phrase."""
        of = f" of {_many(self.people, 'person', 'people')}" if self.people > 1 else ""
        spans = f" with {_many(self.spans, 'span')}" if self.spans else ""
        parts = [f"{_many(self.answers, 'answer')}{of}{spans}"]
        if self.seed:
            parts.append(f"{_many(self.seed, 'sentence')} labeled before the project")
        if self.sources:
            parts.append(f"suggestions of {', '.join(self.sources)}")
        return ", ".join(parts)


def preview(store: Store, wish: Wish) -> Touched:
    """Return what a change would touch; refuse what makes no sense."""
    planned(store, wish)
    with store.reading() as conn:
        history = store.tag_history()
        if wish.kind == "recolor":
            return Touched()
        if wish.kind == "add":
            counts = read_counts(store)
            return Touched(answers=counts.labeled, seed=counts.seed)
        if wish.kind == "undo":
            undone = last_change(history)
            return _touched(store, history, {undone.tag, *undone.into})
        touched = _touched(store, history, {wish.tag})
        has_tag = sources.c.settings.contains(dumps(wish.tag), autoescape=True)
        names = conn.execute(select(sources.c.name).where(has_tag).order_by(sources.c.id)).scalars()
        return Touched(**(vars(touched) | {"sources": tuple(names)}))


def _touched(store: Store, history: TagHistory, tags: set[str]) -> Touched:
    def is_wanted(name: str, place: int) -> bool:
        return not tags.isdisjoint(history.meanings(name, place))

    names = names_where(history, is_wanted) | tags
    answers = spans = 0
    people = set[int]()
    with store.reading() as conn:
        for answer in answers_with(conn, names):
            place = history.at_event(answer.seq)
            n = sum(is_wanted(mark.tag, place) for mark in answer.marks)
            answers, spans = answers + bool(n), spans + n
            people |= {answer.annotator_id} if n else set()
        seed = 0
        for sentence in seeds_with(conn, names):
            place = history.at_change(sentence.tag_change)
            seed += any(is_wanted(name, place) for name in _names(sentence.rows))
    return Touched(answers, spans, len(people), seed)


def _names(rows: list[Row]) -> set[str]:
    """Return the tags in BIO rows, certain or in shares."""
    tags = {name for row in rows if row for name in ([row] if isinstance(row, str) else row)}
    return {name[2:] for name in tags if name != OUTSIDE}


def tag_counts(store: Store) -> dict[str, int]:
    """Return how many spans of current answers have each tag of now."""
    history, counts = store.tag_history(), Counter[str]()
    names = {name for c in history.changes for name in (*c.details.get("tags", ()), *c.into, c.tag)}
    with store.reading() as conn:
        for answer in answers_with(conn, names | {*store.read_tags()}):
            marks, _ = history.marks(answer.marks, history.at_event(answer.seq))
            counts.update(mark.tag for mark in marks)
    return dict(counts)


def _many(n: int, what: str, more: str = "") -> str:
    return f"{n:,} {what if n == 1 else more or what + 's'}"
