"""Sentences: added once, without duplicates, and read page by page, bare or with their labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Select, case, func, insert, select, text, update

from seqmix.data.formats.jsonl_tokens import plain_rows
from seqmix.data.scheme import prefixed
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.errors import DataError, SeqMixError, StoreError, TagError
from seqmix.serve.store.events import parse_marks, parse_ranges
from seqmix.serve.store.records import PAGE, STREAMS, digest, dumps, is_key, loads, rows
from seqmix.serve.store.schema import events, queue, sentences
from seqmix.serve.store.store import Store

AUDIT_AT_MOST = 1000
OPEN_TAGS = "open_tags"  # note: {tag: the last event that says nothing of it}
_AUDIT_LOTS = "audit_lots"  # note: sentences with a lot below it are audited
LOTS = 2**62  # the random order of all sentences
_LABELED = (
    select(sentences, events.c.spans.label("answer"), events.c.sure, events.c.seq, queue.c.state)
    .join_from(sentences, queue)
    .outerjoin(events, events.c.seq == queue.c.gold)
    .order_by(sentences.c.position)
)


@dataclass(frozen=True)
class Added:
    """How many sentences were new, had the tokens of another sentence, or had no tokens."""

    new: int = 0
    duplicates: int = 0
    empty: int = 0


def add_sentences(
    store: Store, added: Iterable[Sentence], seed: bool = False, random_seed: int = 0
) -> Added:
    """Add sentences a page at a time; with `seed`, the labels they carry are kept.

    After `reserve_audit`, new sentences join the audit stream at the same rate.
    """
    last = select(func.coalesce(func.max(sentences.c.position), -1))
    new = duplicates = empty = 0
    with store.writing() as conn:
        first = int(conn.execute(last).scalar_one()) + 1
        rng, audit_lots = np.random.default_rng([random_seed, first]), _audit_lots(store)
        for page in paged(added, PAGE):
            _refuse_repeated_ids(conn, page)
            full = [(sentence, digest(sentence.tokens)) for sentence in page if sentence.tokens]
            same = select(sentences.c.digest).where(sentences.c.digest.in_({d for _, d in full}))
            digests = set(conn.execute(same).scalars())
            lots = rng.integers(LOTS, size=len(full)).tolist()
            sentence_rows, queue_rows = [], []
            for (sentence, key), lot in zip(full, lots, strict=True):
                if key in digests:
                    duplicates += 1
                    continue
                digests.add(key)
                labels = _seed_rows(sentence, store.tags) if seed and sentence.labeled else None
                sentence_rows.append(_sentence_row(sentence, first + new, key, labels))
                stream = "active" if lot >= audit_lots else "audit"
                stream = stream if labels is None else "seed"
                queue_rows.append(_queue_row(sentence.id, key, stream, lot))
                new += 1
            empty += len(page) - len(full)
            if sentence_rows:
                conn.execute(insert(sentences), sentence_rows)
                conn.execute(insert(queue), queue_rows)
        _count_pool(store)
    return Added(new, duplicates, empty)


def _refuse_repeated_ids(conn: Connection, page: Sequence[Sentence]) -> None:
    ids: set[str] = set()
    for sentence in page:
        if not is_key(sentence.id):
            raise DataError(
                "expected the id of a sentence to be 1 to 1000 bytes of whole characters without"
                " NUL",
                text=sentence.id,
            )
        if sentence.id in ids:
            raise DataError("two sentences have the same id; ids must differ", text=sentence.id)
        ids.add(sentence.id)
    earlier = conn.execute(select(sentences.c.id).where(sentences.c.id.in_(ids)).limit(1)).scalar()
    if earlier is not None:
        raise DataError("two sentences have the same id; ids must differ", text=earlier)


def _seed_rows(sentence: Sentence, tags: Collection[str]) -> list[Any]:
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


def _sentence_row(
    sentence: Sentence, position: int, key: str, labels: list[Any] | None
) -> dict[str, Any]:
    return {
        "id": sentence.id,
        "position": position,
        "digest": key,
        "length": len(sentence),
        "tokens": dumps(list(sentence.tokens)),
        "text": None if sentence.text is None else dumps(sentence.text),
        "offsets": None if sentence.offsets is None else dumps(sentence.offsets),
        "seed": None if labels is None else dumps(labels),
    }


def _queue_row(id: str, key: str, stream: str, lot: int) -> dict[str, Any]:
    return {
        "sentence_id": id,
        "stream": stream,
        "state": "done" if stream == "seed" else "free",
        "lot": lot,
        "chance": int(key[:12], 16) / 16**12,
        "generation": -1,
        "rank": lot,
    }


def reserve_audit(store: Store, share: float) -> int:
    """Set apart the random sentences of the audit stream once all are added; return how many.

    They are the first of a random order, so what a model makes of them holds for all the text.
    """
    active = queue.c.stream == "active"
    with store.writing() as conn:
        n = int(conn.execute(select(func.count()).select_from(queue).where(active)).scalar_one())
        size = min(ceil(share * n), AUDIT_AT_MOST, n)
        if size:
            in_order = select(queue.c.lot).where(active).order_by(queue.c.lot)
            last = conn.execute(in_order.offset(size - 1).limit(1)).scalar_one()
            conn.execute(update(queue).where(active, queue.c.lot <= last).values(stream="audit"))
        store.write_note(_AUDIT_LOTS, _highest_audit_lot(conn, share))
        conn.execute(text("ANALYZE"))
    return size


def _audit_lots(store: Store) -> int:
    """Return the lot below which a sentence belongs to the audit stream."""
    with store.reading() as conn:
        lots = store.read_note(_AUDIT_LOTS)
        return _highest_audit_lot(conn, 0.0) if lots is None else int(lots)


def _highest_audit_lot(conn: Connection, share: float) -> int:
    highest = conn.execute(select(func.max(queue.c.lot)).where(queue.c.stream == "audit")).scalar()
    return int(share * LOTS) if highest is None else int(highest) + 1


def _count_pool(store: Store) -> None:
    pool = select(func.count()).where(queue.c.stream.in_(("active", "audit")))
    with store.writing() as conn:
        store.write_note("pool", conn.execute(pool).scalar_one())


def retire_sentences(store: Store, ids: Collection[str]) -> None:
    """Take sentences out of every stream; their text and their history stay."""
    asked = queue.c.stream.in_(("active", "audit"))
    changed = update(queue).where(queue.c.sentence_id.in_(ids), asked).values(stream="retired")
    with store.writing() as conn:
        if conn.execute(changed).rowcount:
            _count_pool(store)


def restore_sentences(store: Store, ids: Collection[str]) -> None:
    """Put retired sentences back into the streams they came from."""
    retired = queue.c.sentence_id.in_(ids), queue.c.stream == "retired"
    with store.writing() as conn:
        stream = case((queue.c.lot < _audit_lots(store), "audit"), else_="active")
        if conn.execute(update(queue).where(*retired).values(stream=stream)).rowcount:
            _count_pool(store)


def mark_tags_unknown(store: Store, tags: Iterable[str]) -> None:
    """Note that answers up to now say nothing about these tags: unmarked does not mean absent."""
    with store.writing() as conn:
        newest = conn.execute(select(func.coalesce(func.max(events.c.seq), 0))).scalar_one()
        open_tags = store.read_note(OPEN_TAGS) or {}
        store.write_note(OPEN_TAGS, {**open_tags, **dict.fromkeys(tags, newest)})


def read_sentences(store: Store, ids: Iterable[str] | None = None) -> Iterator[Sentence]:
    """Yield all sentences in order, or some in the order of their ids, without labels.

    Unknown ids are passed over.
    """
    if ids is None:
        yield from (s.unlabeled() for s in read_labeled(store, unlabeled=True))
        return
    for page in paged(ids, PAGE):
        keys = [id for id in page if is_key(id)]
        with store.reading() as conn:
            matching = conn.execute(select(sentences).where(sentences.c.id.in_(keys)))
            by_id: Mapping[str, Sentence] = {row.id: bare(row) for row in matching}
        yield from (by_id[id] for id in keys if id in by_id)


def read_labeled(store: Store, *streams: str, unlabeled: bool = False) -> Iterator[Sentence]:
    """Yield the labeled sentences of some streams (default: all), with `unlabeled` the others too.

    The adjudicated answer counts, else that of the annotator who answered first, else the seed's.
    Where a person was sure of a part only, the rows of the rest are missing.
    """
    query = _LABELED.where(queue.c.stream.in_(streams or STREAMS))
    if not unlabeled:
        query = query.where(queue.c.state == "done")
    position = -1
    while True:
        page = _read_page(store, query.where(sentences.c.position > position).limit(PAGE))
        yield from (sentence for _, sentence in page)
        if len(page) < PAGE:
            return
        position = page[-1][0]


def _read_page(store: Store, page: Select[Any]) -> list[tuple[int, Sentence]]:
    with store.reading() as conn:
        newest_open = max((store.read_note(OPEN_TAGS) or {}).values(), default=-1)
        return [(row.position, _labeled(row, newest_open)) for row in conn.execute(page)]


def _labeled(row: Row[Any], newest_open: int) -> Sentence:
    """Return a sentence with its answer, or else with the labels it came with.

    subtle: before a tag was added nobody looked for it, so an O from then is missing, not known.
    """
    sentence = bare(row)
    tags = (
        loads(row.seed) or ()
        if row.answer is None
        else rows(parse_marks(row.answer), parse_ranges(row.sure), len(sentence))
    )
    if (row.seq or 0) <= newest_open:
        tags = [None if tag == OUTSIDE else tag for tag in tags]
    return sentence.with_tags(tags)


def read_audit_sentences(store: Store) -> list[Sentence]:
    """Return the audit sentences, answered or not, in the order in which they are asked."""
    audit = (
        select(sentences)
        .join_from(sentences, queue)
        .where(queue.c.stream == "audit")
        .order_by(queue.c.lot)
    )
    with store.reading() as conn:
        return [bare(row) for row in conn.execute(audit)]


def bare(row: Row[Any]) -> Sentence:
    """Return the sentence that a row holds, without labels."""
    tokens, raw = loads(row.tokens), loads(row.text)
    try:
        offsets = None if row.offsets is None else tuple((a, b) for a, b in loads(row.offsets))
        if (
            not isinstance(tokens, list)
            or not all(isinstance(token, str) for token in tokens)
            or not isinstance(raw, str | None)
        ):
            raise TypeError
        return Sentence(row.id, tuple(tokens), (), raw, offsets)
    except (TypeError, ValueError, SeqMixError) as error:
        raise StoreError(
            f"the store holds a sentence {row.id!r} that seqmix did not write;"
            " restore the project from a backup"
        ) from error


def paged(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield items in lists of `size`; the last may be shorter."""
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page
