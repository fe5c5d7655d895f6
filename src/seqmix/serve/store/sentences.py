"""Sentences: added once, without duplicates, and read page by page, bare or with their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Select, case, func, insert, select, text, update

from seqmix.data.sentence import Row as DataRow
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, spans
from seqmix.errors import SeqMixError, StoreError
from seqmix.serve.store.events import parse_marks, parse_ranges
from seqmix.serve.store.new_rows import (
    queue_row,
    refuse_taken_ids,
    seed_rows,
    sentence_row,
    with_free_ids,
)
from seqmix.serve.store.records import PAGE, STREAMS, Mark, Ranges, digest, is_key, loads, rows
from seqmix.serve.store.schema import events, queue, sentences
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory, newest_change, part_without

AUDIT_AT_MOST = 1000
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
    audit: int = 0  # of the new, those that joined the audit stream


def add_sentences(
    store: Store,
    added: Iterable[Sentence],
    seed: bool = False,
    random_seed: int = 0,
    rename: bool = False,
) -> Added:
    """Add sentences a page at a time; with `seed`, the labels they carry are kept.

    After `reserve_audit`, new sentences join the audit stream at the same rate. A taken id is an
    error; with `rename`, the new sentence gets another.
    """
    last = select(func.coalesce(func.max(sentences.c.position), -1))
    counts = Counter[str]()
    with store.writing() as conn:
        first = int(conn.execute(last).scalar_one()) + 1
        rng, audit_lots = np.random.default_rng([random_seed, first]), _audit_lots(store)
        tag_change = newest_change(conn)
        for page in paged(added, PAGE):
            if not rename:
                refuse_taken_ids(conn, page)
            new = _without_duplicates(conn, page, counts)
            renamed = with_free_ids(conn, list(new.values())) if rename else new.values()
            lots = rng.integers(LOTS, size=len(new)).tolist()
            rows_of = []
            for (key, lot), sentence in zip(zip(new, lots, strict=True), renamed, strict=True):
                labels = seed_rows(sentence, store.tags) if seed and sentence.labeled else None
                stream = "active" if lot >= audit_lots else "audit"
                stream = stream if labels is None else "seed"
                place = first + counts["new"]
                row = sentence_row(sentence, place, key, labels) | {"tag_change": tag_change}
                rows_of.append((row, queue_row(sentence.id, key, stream, lot)))
                counts.update(("new", stream))
            if rows_of:
                conn.execute(insert(sentences), [row for row, _ in rows_of])
                conn.execute(insert(queue), [row for _, row in rows_of])
        _count_pool(store)
    return Added(*(counts[what] for what in ("new", "duplicates", "empty", "audit")))


def _without_duplicates(
    conn: Connection, page: Sequence[Sentence], counts: Counter[str]
) -> dict[str, Sentence]:
    """Return the sentences whose tokens no other sentence has, by digest; count the rest."""
    full = [(digest(sentence.tokens), sentence) for sentence in page if sentence.tokens]
    same = select(sentences.c.digest).where(sentences.c.digest.in_({key for key, _ in full}))
    stored, new = set(conn.execute(same).scalars()), dict[str, Sentence]()
    for key, sentence in full:
        if key not in stored:
            new.setdefault(key, sentence)
    counts["empty"] += len(page) - len(full)
    counts["duplicates"] += len(full) - len(new)
    return new


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

    Discarded ones are left out. The adjudicated answer counts, else that of the annotator who
    answered first, else the seed's. Where a person was sure of a part only, the rows of the rest
    are missing.
    """
    query = _LABELED.where(queue.c.stream.in_(streams or STREAMS))
    query = query.where(queue.c.state != "discard" if unlabeled else queue.c.state == "done")
    position = -1
    while True:
        page = _read_page(store, query.where(sentences.c.position > position).limit(PAGE))
        yield from (sentence for _, sentence in page)
        if len(page) < PAGE:
            return
        position = page[-1][0]


def read_labeled_by_id(store: Store, ids: Collection[str]) -> Iterator[Sentence]:
    """Yield the labeled sentences among some, as `read_labeled` does, in the order of the text."""
    keys = [id for id in ids if is_key(id)]
    query = _LABELED.where(queue.c.sentence_id.in_(keys), queue.c.state == "done")
    yield from (sentence for _, sentence in _read_page(store, query) if sentence.tags)


def _read_page(store: Store, page: Select[Any]) -> list[tuple[int, Sentence]]:
    with store.reading() as conn:
        tags = store.tag_history()
        return [(row.position, _labeled(row, tags)) for row in conn.execute(page)]


def _labeled(row: Row[Any], history: TagHistory) -> Sentence:
    """Return a sentence with its answer, or else with the labels it came with."""
    if row.answer is None:
        return with_seed(row, history)
    sentence, place = bare(row), history.at_event(row.seq)
    marks, opened = history.marks(parse_marks(row.answer), place)
    sure = part_without(parse_ranges(row.sure), opened, len(sentence))
    tags = rows(marks, sure, len(sentence))
    return sentence.with_tags(without_unasked(tags, history.unasked(place)))


def with_seed(row: Row[Any], history: TagHistory) -> Sentence:
    """Return the sentence that a row holds, with the labels it came with, if any."""
    place = history.at_change(row.tag_change or 0)
    tags = history.rows(loads(row.seed) or (), place)
    return bare(row).with_tags(without_unasked(tags, history.unasked(place)))


def as_answer(sentence: Sentence) -> tuple[tuple[Mark, ...], Ranges | None]:
    """Return labels as the marks of an answer and the part it is about; None: all of it."""
    hard = [OUTSIDE if tag is None else str(tag) for tag in sentence.hardened().tags]
    marks = tuple(Mark(span.start, span.end, span.type) for span in spans(hard))
    labeled = [tag is not None for tag in sentence.tags]
    if all(labeled):
        return marks, None
    around = zip([False, *labeled], [*labeled, False], strict=True)
    edges = [at for at, (before, after) in enumerate(around) if before != after]
    return marks, tuple(zip(edges[::2], edges[1::2], strict=True))


def without_unasked(tags: Sequence[DataRow], unasked: Collection[str]) -> Sequence[DataRow]:
    """Return the tags of an answer; where nobody looked for some tags, unmarked says nothing."""
    return [None if tag == OUTSIDE else tag for tag in tags] if unasked else tags


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
