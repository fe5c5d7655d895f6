"""Suggestions that take long to compute: stored by sentence and source, and filled in ahead.

A suggestion has the version of what suggested: another model or prompt has another version, and
nothing is computed twice for the same one. A mark without a tag points at a name.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, insert, select

from seqmix.data.sentence import Sentence
from seqmix.serve.sources.records import Source
from seqmix.serve.store.queue import coming_ids
from seqmix.serve.store.records import Mark, checked_marks, dumps, loads
from seqmix.serve.store.schema import queue, suggestions
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import NOTHING, newest_change

AHEAD = 300  # sentences at the head of the queue that have suggestions before they are shown
_AUDITED = 50  # answered audit sentences at a time, for the F1
_OF = select(suggestions.c.source_id, suggestions.c.spans).where(
    suggestions.c.sentence_id == bindparam("sentence")
)


@dataclass(frozen=True)
class Suggestion:
    """The marks that a source suggests for a sentence, or why it suggests none."""

    sentence_id: str
    marks: tuple[Mark, ...]
    problem: str | None = None


def write_suggestions(
    store: Store, source: Source, version: str, rows: Sequence[tuple[Sentence, Suggestion]]
) -> None:
    """Replace what a source suggests for some sentences; every mark is checked first."""
    tags = store.read_tags()
    with store.writing(durable=False) as conn:
        newest, at = newest_change(conn), time.time()
        values = []
        for sentence, row in rows:
            tagged = [mark for mark in row.marks if mark.tag != NOTHING]
            checked_marks(tagged, len(sentence), tags)
            pointing = [Mark(mark.start, mark.end, tags[0]) for mark in row.marks]
            checked_marks(pointing, len(sentence), tags)  # those without a tag have places, too
            content: dict[str, Any] = {"marks": [list(mark) for mark in row.marks]}
            content |= {"tag_change": newest} if newest else {}
            content |= {"problem": row.problem} if row.problem else {}
            key = {"sentence_id": sentence.id, "source_id": source.id, "version": version}
            values.append({**key, "spans": dumps(content), "at": at})
        same = suggestions.c.source_id == source.id
        ids = [value["sentence_id"] for value in values]
        conn.execute(delete(suggestions).where(same, suggestions.c.sentence_id.in_(ids)))
        if values:
            conn.execute(insert(suggestions), values)


def stored_marks(store: Store, sentence_id: str) -> Mapping[int, tuple[Mark, ...]]:
    """Return what is stored for a sentence by source, with the tags of now."""
    with store.reading() as conn:
        rows = conn.execute(_OF, {"sentence": sentence_id}).all()
        if not rows:
            return {}
        history, result = store.tag_history(), dict[int, tuple[Mark, ...]]()
        for row in rows:
            content = loads(row.spans)
            marks = [Mark(*mark) for mark in content["marks"]]
            place = history.at_change(content.get("tag_change", 0))
            tagged = history.marks([mark for mark in marks if mark.tag != NOTHING], place)[0]
            pointing = [mark for mark in marks if mark.tag == NOTHING]
            result[row.source_id] = tuple(sorted((*tagged, *pointing)))
        return result


def missing_ids(store: Store, source: Source, version: str, most: int) -> list[str]:
    """Return sentences that need a suggestion of this version, those needed soonest first.

    These are the head of the queue, then answered audit sentences, on which the F1 is measured.
    """
    audited = (
        select(queue.c.sentence_id)
        .where(queue.c.stream == "audit", queue.c.state == "done")
        .where(
            ~_has(source, version).where(suggestions.c.sentence_id == queue.c.sentence_id).exists()
        )
        .limit(_AUDITED)
    )
    with store.reading() as conn:
        soon = coming_ids(conn, AHEAD)
        known = _has(source, version).where(suggestions.c.sentence_id.in_(soon))
        there = set(conn.execute(known).scalars())
        ids = [id for id in soon if id not in there]
        if len(ids) < most:
            ids += conn.execute(audited).scalars()
    return ids[:most]


def _has(source: Source, version: str) -> Any:
    return select(suggestions.c.sentence_id).where(
        suggestions.c.source_id == source.id, suggestions.c.version == version
    )


def problems(store: Store, source: Source) -> list[str]:
    """Return what went wrong with a source's sentences, once for each."""
    with store.reading() as conn:
        rows = conn.execute(
            select(suggestions.c.spans).where(
                suggestions.c.source_id == source.id, suggestions.c.spans.contains('"problem"')
            )
        ).scalars()
        return [loads(spans)["problem"] for spans in rows]


def as_suggestions(
    sentences: Iterable[Sentence], marks: Iterable[Iterable[Mark]]
) -> list[tuple[Sentence, Suggestion]]:
    """Return sentences with the marks for each."""
    return [
        (sentence, Suggestion(sentence.id, tuple(some)))
        for sentence, some in zip(sentences, marks, strict=True)
    ]
