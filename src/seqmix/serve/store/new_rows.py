"""New sentences as rows of the tables, under ids that nothing else has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from sqlalchemy import Connection, select

from seqmix.data.formats.jsonl_tokens import plain_rows
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, prefixed
from seqmix.errors import DataError, TagError
from seqmix.serve.store.records import dumps, is_key
from seqmix.serve.store.schema import sentences


def refuse_taken_ids(conn: Connection, page: Sequence[Sentence]) -> None:
    """Refuse ids that no database can look up, and those that another sentence has."""
    ids: set[str] = set()
    for sentence in page:
        _refuse_strange(sentence.id)
        if sentence.id in ids:
            raise DataError("two sentences have the same id; ids must differ", text=sentence.id)
        ids.add(sentence.id)
    earlier = conn.execute(select(sentences.c.id).where(sentences.c.id.in_(ids)).limit(1)).scalar()
    if earlier is not None:
        raise DataError("two sentences have the same id; ids must differ", text=earlier)


def with_free_ids(conn: Connection, new: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences; a second `notes:7` becomes `notes:7+2`, the next `notes:7+3`."""
    for sentence in new:
        _refuse_strange(sentence.id)
    ids, free = {sentence.id for sentence in new}, list[Sentence]()
    taken = set(conn.execute(select(sentences.c.id).where(sentences.c.id.in_(ids))).scalars())
    for sentence in new:
        id = sentence.id
        if id in taken:
            names = (f"{id}+{number}" for number in count(2))
            id = next(name for name in names if not (name in taken or _is_taken(conn, name)))
        taken.add(id)
        free.append(sentence if id == sentence.id else replace(sentence, id=id))
    return free


def _is_taken(conn: Connection, id: str) -> bool:
    return conn.execute(select(sentences.c.id).where(sentences.c.id == id)).first() is not None


def _refuse_strange(id: str) -> None:
    if not is_key(id):
        raise DataError(
            "expected the id of a sentence to be 1 to 1000 bytes of whole characters without NUL",
            text=id,
        )


def seed_rows(sentence: Sentence, tags: Collection[str]) -> list[Any]:
    """Return a sentence's tag rows, after checking that the project has their tags."""
    for row in sentence.tags:
        for name in (row,) if isinstance(row, str) else row or ():
            if name != OUTSIDE and not (
                prefixed(name) and name[:2] in ("B-", "I-") and name[2:] in tags
            ):
                raise TagError(
                    f"sentence {sentence.id!r} has a label that is not B- or I- and one of this"
                    f" project's tags {', '.join(tags)}",
                    text=name,
                )
    return plain_rows(sentence)


def sentence_row(
    sentence: Sentence, position: int, key: str, labels: list[Any] | None
) -> dict[str, Any]:
    """Return a row of the table of sentences."""
    return {
        "id": sentence.id,
        "position": position,
        "digest": key,
        "length": len(sentence),
        "tokens": dumps(list(sentence.tokens)),
        "text": None if sentence.text is None else dumps(sentence.text),
        "offsets": None if sentence.offsets is None else dumps(sentence.offsets),
        "seed": None if labels is None else dumps(labels),
        "document": sentence.id.rpartition(":")[0] or None,
    }


def queue_row(id: str, key: str, stream: str, lot: int) -> dict[str, Any]:
    """Return a row of the queue."""
    return {
        "sentence_id": id,
        "stream": stream,
        "state": "done" if stream == "seed" else "free",
        "lot": lot,
        "chance": int(key[:12], 16) / 16**12,
        "generation": -1,
        "rank": lot,
    }
