"""Search answers and open sentences, page by page.

A page resumes behind the key of the last entry before it, so the last page is as fast as the first
and an answer that arrives meanwhile moves nothing. Answers come newest first, sentences in the
order of the text. Audit sentences that wait for their turn are left out: answered because somebody
looked for them, they would no longer be a random sample.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, case, func, or_, select

from seqmix.data.sentence import Sentence
from seqmix.serve.answers.patterns import like, text_pattern
from seqmix.serve.store.current import answer_in
from seqmix.serve.store.events import is_current
from seqmix.serve.store.records import PAGE, Answer, Mark, Ranges, dumps, is_key, loads
from seqmix.serve.store.schema import (
    annotators,
    batches,
    comments,
    events,
    queue,
    sentences,
)
from seqmix.serve.store.sentences import as_answer, bare, with_seed
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory
from seqmix.serve.tags.touched import names_where

STATES = {
    "answered": ("label", "adjudicate"),
    "skipped": ("skip",),
    "discarded": ("discard",),
    "open": (),
    "seed": (),
}


@dataclass(frozen=True)
class Wanted:
    """What an entry must be; what is empty does not matter."""

    state: str = "answered"  # one of STATES
    id: str = ""
    text: str = ""
    tag: str = ""
    annotator: str = ""
    stream: str = ""
    source: str = ""  # what suggested a span of it, or the kind of its batch
    since: float | None = None
    until: float | None = None
    before_tag: str = ""  # given before there was this tag
    commented: bool = False  # has a comment or a flag that is not resolved


@dataclass(frozen=True)
class Entry:
    """An answer with its sentence, or a sentence without an answer."""

    key: int
    sentence: Sentence
    stream: str
    answer: Answer | None = None
    counts: bool = False  # it is the answer that training and export use
    batch: tuple[int, str] | None = None  # its id and kind
    shown: Mapping[str, Any] | None = None
    comments: int = 0  # not resolved
    # the marks it came with, and the part they are about; None: they are about all of it
    seed: tuple[tuple[Mark, ...], Ranges | None] | None = None


def search(
    store: Store,
    wanted: Wanted,
    after: int | None = None,
    limit: int = 50,
    reader: int | None = None,
) -> tuple[list[Entry], int | None]:
    """Return a page of entries and the key to resume behind; None: there are no more.

    A `reader` sees no answers but theirs.
    """
    entries: list[Entry] = []
    for entry in _matching(store, wanted, after, limit, reader):
        if len(entries) == limit:
            return entries, entries[-1].key
        entries.append(entry)
    return entries, None


def _matching(
    store: Store, wanted: Wanted, after: int | None, limit: int, reader: int | None
) -> Iterator[Entry]:
    answered = bool(STATES[wanted.state])
    size = min(limit + 1, PAGE)
    while True:
        with store.reading() as conn:
            tags = store.tag_history()
            if answered:
                statement = _answers(tags, conn, wanted, after, reader)
            else:
                statement = _sentences(conn, wanted, after)
            rows = conn.execute(statement.limit(size)).all()
        for row in rows:
            if _contains(row, wanted.text):
                entry = _entry(row, answered, tags)
                if _has_tag(entry, wanted.tag):
                    yield entry
        if len(rows) < size:
            return
        after, size = rows[-1].key, PAGE


def _answers(
    tags: TagHistory, conn: Connection, wanted: Wanted, after: int | None, reader: int | None
) -> Select[Any]:
    """Return the statement of the answers that count for their annotator, newest first."""
    counts = queue.c.gold == events.c.seq
    kinds = STATES[wanted.state]
    statement = (
        select(
            sentences,
            events,
            events.c.seq.label("key"),
            annotators.c.name.label("annotator"),
            batches.c.kind.label("batch_kind"),
            counts.label("counts"),
            _unresolved().label("unresolved"),
        )
        .join_from(events, sentences, sentences.c.id == events.c.sentence_id)
        .join(queue, queue.c.sentence_id == events.c.sentence_id)
        .join(annotators, annotators.c.id == events.c.annotator_id)
        .outerjoin(batches, batches.c.id == events.c.batch)
        .where(
            events.c.kind.in_(kinds),
            or_(
                is_current(),
                and_(events.c.kind == "adjudicate", counts),
            ),
            *_conditions(conn, wanted),
        )
        .order_by(events.c.seq.desc())
    )
    if after is not None:
        statement = statement.where(events.c.seq < after)
    if reader is not None:
        statement = statement.where(events.c.annotator_id == reader)
    if wanted.before_tag:
        statement = statement.where(events.c.seq <= last_without(tags, wanted.before_tag))
    return statement.where(*_answer_conditions(wanted, _names_of(tags, wanted.tag)))


def _names_of(tags: TagHistory, tag: str) -> set[str]:
    """Return the names of now and earlier that may mean a tag."""
    return names_where(tags, lambda name, place: tag in tags.meanings(name, place)) | {tag}


def _has_tag(entry: Entry, tag: str) -> bool:
    """Whether an answer has a tag, or may have it: it was split. Labels of the seed count, too."""
    if tag and entry.seed is not None:
        return any(mark.tag == tag for mark in entry.seed[0])
    if not tag or entry.answer is None:
        return True
    has = any(mark.tag == tag for mark in entry.answer.spans)
    return has or any(tag in mark.choices for mark in entry.answer.open)


def _answer_conditions(wanted: Wanted, names: Collection[str]) -> Iterator[Any]:
    """Yield the conditions on an answer; `names` are what its tag was called."""
    if wanted.tag:
        yield or_(*(events.c.spans.contains(f",{dumps(name)}]", autoescape=True) for name in names))
    if wanted.annotator:
        by_name = select(annotators.c.id).where(annotators.c.name == wanted.annotator)
        yield events.c.annotator_id == by_name.scalar_subquery()
    if wanted.stream:
        yield events.c.stream == wanted.stream
    if wanted.source:
        suggested = events.c.shown.contains(f"{dumps(wanted.source)}:", autoescape=True)
        yield or_(suggested, batches.c.kind == wanted.source)
    if wanted.since is not None:
        yield events.c.at >= wanted.since
    if wanted.until is not None:
        yield events.c.at < wanted.until


def _sentences(conn: Connection, wanted: Wanted, after: int | None) -> Select[Any]:
    """Return the statement of the sentences that nobody has answered, in the order of the text."""
    statement = (
        select(
            sentences,
            sentences.c.position.label("key"),
            queue.c.stream,
            _unresolved().label("unresolved"),
        )
        .join_from(sentences, queue)
        .where(*_conditions(conn, wanted))
        .order_by(sentences.c.position)
    )
    if wanted.state == "seed":
        statement = statement.where(queue.c.stream == "seed", queue.c.gold.is_(None))
    else:
        statement = statement.where(queue.c.stream == "active", queue.c.state != "done")
    return statement if after is None else statement.where(sentences.c.position > after)


def _conditions(conn: Connection, wanted: Wanted) -> Iterator[Any]:
    """Yield the conditions on a sentence."""
    if wanted.id:
        yield sentences.c.id == (wanted.id if is_key(wanted.id) else "")
    if wanted.text.strip():
        searched = case((sentences.c.text.is_not(None), sentences.c.text), else_=sentences.c.tokens)
        yield like(conn, searched, text_pattern(wanted.text))
    if wanted.commented:
        yield select(comments.c.id).where(_of_sentence()).exists()


def _of_sentence() -> Any:
    return and_(comments.c.sentence_id == sentences.c.id, comments.c.resolved_at.is_(None))


def _unresolved() -> Any:
    return select(func.count()).select_from(comments).where(_of_sentence()).scalar_subquery()


def last_without(tags: TagHistory, tag: str) -> int:
    """Return the last event before there was a tag; 0: the project has always had it."""
    undone = tags.undone
    added = (
        change.after
        for at, change in enumerate(tags.changes)
        if change.kind == "add" and change.id not in undone
        if tag in tags.meanings(change.tag, at + 1)
    )
    return min(added, default=0)


def _contains(row: Row[Any], text: str) -> bool:
    """Whether the text of a sentence contains another, in any case and with any white space."""
    sought = " ".join(text.split()).lower()
    if not sought:
        return True
    raw = loads(row.text)
    whole = " ".join(loads(row.tokens)) if raw is None else " ".join(raw.split())
    return sought in whole.lower()


def _entry(row: Row[Any], answered: bool, tags: TagHistory) -> Entry:
    """Return what a row holds, its marks with the tags of now."""
    sentence = bare(row)
    if not answered:
        seed = as_answer(with_seed(row, tags)) if row.stream == "seed" else None
        return Entry(row.key, sentence, row.stream, comments=row.unresolved, seed=seed)
    answer = answer_in(row, tags, lambda: len(sentence))
    batch = None if row.batch is None else (row.batch, row.batch_kind)
    counts, shown = bool(row.counts), loads(row.shown)
    return Entry(row.key, sentence, answer.stream, answer, counts, batch, shown, row.unresolved)
