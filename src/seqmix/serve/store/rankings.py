"""Results of a training: a ranking with suggestions, its figures, and generated sentences."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from seqmix.errors import NotFoundError
from seqmix.serve.store.records import (
    Generated,
    Generation,
    Mark,
    Notes,
    Rank,
    checked_marks,
    digest,
    dumps,
    is_key,
    loads,
)
from seqmix.serve.store.schema import generated, generations, queue, sentences
from seqmix.serve.store.sentences import paged
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import newest_change

_MOST = 1000  # generated sentences to a page
_BATCH = 100  # ranks per transaction: a few milliseconds, as somebody may be waiting to save
_SET_RANK = (
    update(queue)
    .where(queue.c.sentence_id == bindparam("sentence"), queue.c.stream == "active")
    .values({name: bindparam(name) for name in ("generation", "rank", "score", "suggestion")})
)


def publish_generation(
    store: Store,
    generation: Generation,
    ranks: Iterable[Rank] = (),
    records: Iterable[Mapping[str, Any]] = (),
    pause: Callable[[], None] = lambda: time.sleep(0.01),
) -> None:
    """Write a new ranking, best first, then the generation with what it generated.

    Between the short transactions others save and ask. At every moment the order is the
    beginning of the new ranking followed by the old one, which is a valid order too.
    """
    with store.reading() as conn:
        newest = newest_change(conn)
    if newest and generation.notes.tag_change is None:
        generation = replace(generation, notes=replace(generation.notes, tag_change=newest))
    first = 0
    for batch in paged(ranks, _BATCH):
        with store.reading() as conn:
            rows = _rank_rows(store, conn, generation, first, batch)
        with store.writing(durable=False) as conn:
            conn.execute(_SET_RANK, rows)  # audit and seed sentences keep their place
        first += len(batch)
        pause()
    with store.writing() as conn:
        _write_generation(conn, generation)
        _write_generated(store, generation.number, records)


def _rank_rows(
    store: Store, conn: Connection, by: Generation, first: int, ranks: Sequence[Rank]
) -> list[dict[str, Any]]:
    """Return ranks as rows to write, once their sentences and suggestions are checked.

    A suggestion gets the tags of now: they may have changed while the model was trained.
    """
    history, tags = store.tag_history(), store.read_tags()
    ids = [rank.sentence_id for rank in ranks]
    columns = select(sentences.c.id, sentences.c.length).where(sentences.c.id.in_(ids))
    lengths: Mapping[str, int] = {row.id: row.length for row in conn.execute(columns)}
    rows = []
    for place, rank in enumerate(ranks, first):
        if rank.sentence_id not in lengths:
            raise NotFoundError("sentence", rank.sentence_id)
        suggestion = rank.suggestion
        if suggestion is not None:
            known = {**suggestion, "tag_change": by.notes.tag_change or 0}
            suggestion = {**(history.suggestion(known) or known), "tag_change": history.newest}
            spans = ((span["start"], span["end"], span["tag"]) for span in suggestion["spans"])
            checked_marks(spans, lengths[rank.sentence_id], tags)
            if not history.newest:
                del suggestion["tag_change"]
        rows.append(
            {
                "sentence": rank.sentence_id,
                "generation": by.number,
                "rank": place,
                "score": float(rank.score),
                "suggestion": None if suggestion is None else dumps(suggestion),
            }
        )
    return rows


def _write_generation(conn: Connection, generation: Generation) -> None:
    audit = [
        {"id": answer["id"], "marks": [list(Mark(*mark)) for mark in answer["marks"]]}
        for answer in generation.audit
    ]
    values = {
        "number": generation.number,
        "at": generation.at or time.time(),
        "labeled": generation.labeled,
        "tokens": generation.tokens,
        "spans": generation.spans,
        "dev": None if generation.notes == Notes() else dumps(generation.notes.to_json()),
        "audit": dumps(audit),
        "seconds": dumps(dict(generation.seconds)),
        "model": generation.model,
    }
    conn.execute(delete(generations).where(generations.c.number == generation.number))
    conn.execute(insert(generations).values(values))


def _write_generated(store: Store, number: int, records: Iterable[Mapping[str, Any]]) -> None:
    """Replace the generated sentences; vetoed ones stay and are not added again."""
    rows: dict[str, dict[str, Any]] = {}
    with store.writing() as conn:
        conn.execute(delete(generated).where(generated.c.vetoed_by.is_(None)))
        vetoed = vetoed_ids(store)
        for place, record in enumerate(records):
            id = digest(record["tokens"])
            if id not in vetoed:
                row = {"id": id, "generation": number, "place": place, "record": dumps(record)}
                rows.setdefault(id, row)
        if rows:
            conn.execute(insert(generated), list(rows.values()))


def read_generations(store: Store, n: int | None = None) -> list[Generation]:
    """Return the last n trainings (all by default), oldest first."""
    newest = select(generations).order_by(generations.c.number.desc()).limit(n)
    with store.reading() as conn:
        return [_generation(row) for row in reversed(conn.execute(newest).all())]


def _generation(row: Row[Any]) -> Generation:
    return Generation(
        row.number,
        row.labeled,
        row.tokens,
        row.spans,
        Notes.from_json(loads(row.dev) or {}),
        loads(row.audit),
        loads(row.seconds),
        row.model,
        row.at,
    )


def read_generated(store: Store, n: int = 50, offset: int = 0) -> tuple[list[Generated], int]:
    """Return some generated sentences, newest generation first, and how many there are."""
    newest = select(generated).order_by(
        generated.c.generation.desc(), generated.c.place, generated.c.id
    )
    with store.reading() as conn:
        total = int(conn.execute(select(func.count()).select_from(generated)).scalar_one())
        limit, skipped = max(0, min(n, _MOST)), max(0, min(offset, total))
        rows = conn.execute(newest.limit(limit).offset(skipped)).all()
    return [
        Generated(row.id, row.generation, loads(row.record), row.vetoed_by is not None)
        for row in rows
    ], total


def set_veto(store: Store, generated_id: str, annotator_id: int, on: bool = True) -> None:
    """Keep a generated sentence out of training for good, or allow it again."""
    values = {"vetoed_by": annotator_id if on else None, "vetoed_at": time.time() if on else None}
    changed = update(generated).where(generated.c.id == generated_id).values(values)
    with store.writing() as conn:
        if not is_key(generated_id) or conn.execute(changed).rowcount == 0:
            raise NotFoundError("generated sentence", generated_id)


def vetoed_ids(store: Store) -> set[str]:
    """Return `digest(tokens)` of every sentence that was vetoed."""
    vetoed = select(generated.c.id).where(generated.c.vetoed_by.is_not(None))
    with store.reading() as conn:
        return set(conn.execute(vetoed).scalars())
