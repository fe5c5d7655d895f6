"""What the trainer hands over: a new order of the sentences with suggestions, a line about the training, and generated sentences."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from seqmix.errors import NotFoundError
from seqmix.serve.store.records import (
    Generated,
    Generation,
    Mark,
    Rank,
    checked_marks,
    digest,
    dumps,
    is_key,
    loads,
)
from seqmix.serve.store.schema import generated, generations, queue, sentences

_MOST = 1000  # rows to a page
_RANK = (
    update(queue)
    .where(queue.c.sentence_id == bindparam("of"), queue.c.stream == "active")
    .values({name: bindparam(name) for name in ("generation", "rank", "score", "suggestion")})
)


def ranked(
    conn: Connection, number: int, first: int, ranks: Sequence[Rank], tags: Collection[str]
) -> list[dict[str, Any]]:
    """One stretch of a ranking as rows to write, once it is certain that its sentences and suggestions are good ones."""
    lengths = select(sentences.c.id, sentences.c.length).where(
        sentences.c.id.in_([rank.sentence_id for rank in ranks])
    )
    known: Mapping[str, int] = {row.id: row.length for row in conn.execute(lengths)}
    rows = []
    for place, rank in enumerate(ranks, first):
        if rank.sentence_id not in known:
            raise NotFoundError("sentence", rank.sentence_id)
        suggestion = rank.suggestion
        if suggestion is not None:
            checked_marks(
                ((m["start"], m["end"], m["tag"]) for m in suggestion["spans"]),
                known[rank.sentence_id],
                tags,
            )
        rows.append(
            {
                "of": rank.sentence_id,
                "generation": number,
                "rank": place,
                "score": float(rank.score),
                "suggestion": None if suggestion is None else dumps(suggestion),
            }
        )
    return rows


def put_ranks(conn: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Write a stretch. Audit and seed sentences keep out of it: nobody chose them."""
    conn.execute(_RANK, rows)


def put_generation(
    conn: Connection, made: Generation, records: Iterable[Mapping[str, Any]]
) -> None:
    """Close a generation: its figures, and what it generated in place of what the last one did. Vetoed sentences stay, as vetoed."""
    audit = [
        {"id": one["id"], "marks": [list(Mark(*mark)) for mark in one["marks"]]}
        for one in made.audit
    ]
    values = {
        "number": made.number,
        "at": made.at or time.time(),
        "labeled": made.labeled,
        "tokens": made.tokens,
        "spans": made.spans,
        "dev": None if made.dev is None else dumps(made.dev),
        "audit": dumps(audit),
        "seconds": dumps(dict(made.seconds)),
        "model": made.model,
    }
    conn.execute(delete(generations).where(generations.c.number == made.number))
    conn.execute(insert(generations).values(values))
    conn.execute(delete(generated).where(generated.c.vetoed_by.is_(None)))
    refused = vetoed(conn)
    fresh: dict[str, dict[str, Any]] = {}
    for place, record in enumerate(records):
        key = digest(record["tokens"])
        if key not in refused:
            fresh.setdefault(
                key, {"id": key, "generation": made.number, "place": place, "record": dumps(record)}
            )
    if fresh:
        conn.execute(insert(generated), list(fresh.values()))


def suggestion(conn: Connection, sentence_id: str) -> tuple[Mapping[str, Any] | None, int | None]:
    """What the last model that ranked a sentence would answer, and that model's number."""
    wanted = select(queue.c.suggestion, queue.c.generation).where(
        queue.c.sentence_id == sentence_id, queue.c.stream == "active"
    )
    found = conn.execute(wanted).first() if is_key(sentence_id) else None
    if found is None or found.generation < 0:
        return None, None
    return loads(found.suggestion), found.generation


def newest(conn: Connection, n: int | None = None) -> list[Generation]:
    """The last n generations (or all), oldest first."""
    found = conn.execute(select(generations).order_by(generations.c.number.desc()).limit(n)).all()
    return [_generation(row) for row in reversed(found)]


def page(conn: Connection, n: int, offset: int) -> tuple[list[Generated], int]:
    """Some generated sentences, the newest generation first, and how many there are."""
    total = int(conn.execute(select(func.count()).select_from(generated)).scalar_one())
    wanted = select(generated).order_by(
        generated.c.generation.desc(), generated.c.place, generated.c.id
    )
    found = conn.execute(wanted.limit(max(0, min(n, _MOST))).offset(max(0, min(offset, total))))
    return [
        Generated(row.id, row.generation, loads(row.record), row.vetoed_by is not None)
        for row in found
    ], total


def veto(conn: Connection, id: str, annotator_id: int, on: bool, now: float) -> None:
    """Refuse a generated sentence, or take the refusal back."""
    values = {"vetoed_by": annotator_id if on else None, "vetoed_at": now if on else None}
    changed = update(generated).where(generated.c.id == id).values(values)
    if not is_key(id) or conn.execute(changed).rowcount == 0:
        raise NotFoundError("generated sentence", id)


def vetoed(conn: Connection) -> set[str]:
    """The ids (digests of the tokens) of all that was ever refused."""
    return set(
        conn.execute(select(generated.c.id).where(generated.c.vetoed_by.is_not(None))).scalars()
    )


def _generation(row: Row[Any]) -> Generation:
    return Generation(
        row.number,
        row.labeled,
        row.tokens,
        row.spans,
        loads(row.dev),
        loads(row.audit),
        loads(row.seconds),
        row.model,
        row.at,
    )
