"""Sentences in and out of the store: added once, without duplicates, and read page by page, bare or with the labels they have by now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Select, case, func, insert, select, update

from seqmix.data.formats.jsonl_tokens import plain_rows
from seqmix.data.scheme import prefixed
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.errors import DataError, SeqMixError, StoreError, TagError
from seqmix.serve.store.answers import marks_of, ranges_of
from seqmix.serve.store.records import digest, dumps, is_key, loads, rows
from seqmix.serve.store.schema import events, meta, queue, sentences

PAGE = 500
AUDIT_AT_MOST = 1000
OPEN = "open_tags"  # noted by tag: the last event that says nothing of it
_LOTS = 2**62


@dataclass(frozen=True)
class Added:
    """What became of the sentences given: how many are new, how many had the tokens of another one or none at all."""

    new: int = 0
    duplicates: int = 0
    empty: int = 0


def add(
    conn: Connection,
    given: Iterable[Sentence],
    tags: Collection[str],
    with_labels: bool,
    seed: int,
    audit_lots: int = 0,
) -> Added:
    """Add sentences; those with labels become the seed if `with_labels`, else labels are dropped.

    Memory holds one page. Sentences whose lot is below `audit_lots` join the audit stream.
    """
    position = (
        int(conn.execute(select(func.coalesce(func.max(sentences.c.position), -1))).scalar_one())
        + 1
    )
    rng = np.random.default_rng([seed, position])
    new = duplicates = empty = 0
    for page in paged(given, PAGE):
        _refuse_known_ids(conn, page)
        full = [(sentence, digest(sentence.tokens)) for sentence in page if sentence.tokens]
        known = set(
            conn.execute(
                select(sentences.c.digest).where(sentences.c.digest.in_({key for _, key in full}))
            ).scalars()
        )
        lots = rng.integers(_LOTS, size=len(full)).tolist()
        texts: list[dict[str, Any]] = []
        places: list[dict[str, Any]] = []
        for (sentence, key), lot in zip(full, lots, strict=True):
            if key in known:
                duplicates += 1
                continue
            known.add(key)
            labels = _seed(sentence, tags) if with_labels and sentence.labeled else None
            texts.append(_text(sentence, position, key, labels))
            stream = "seed" if labels is not None else "audit" if lot < audit_lots else "active"
            places.append(_queued(sentence.id, key, stream, lot))
            position += 1
        empty += len(page) - len(full)
        new += len(texts)
        if texts:
            conn.execute(insert(sentences), texts)
            conn.execute(insert(queue), places)
    return Added(new, duplicates, empty)


def reserve_audit(conn: Connection, share: float) -> int:
    """Set the audit sentences apart: the first of a random order of all, so that what a model makes of them holds for all."""
    active = queue.c.stream == "active"
    n = int(conn.execute(select(func.count()).select_from(queue).where(active)).scalar_one())
    size = min(ceil(share * n), AUDIT_AT_MOST, n)
    if size:
        last = conn.execute(
            select(queue.c.lot).where(active).order_by(queue.c.lot).offset(size - 1).limit(1)
        ).scalar_one()
        conn.execute(update(queue).where(active, queue.c.lot <= last).values(stream="audit"))
    return size


def audit_lots(conn: Connection, share: float = 0.0) -> int:
    """Return the lot below which sentences are audited, so that later ones join at the same rate."""
    last = select(func.max(queue.c.lot)).where(queue.c.stream == "audit")
    highest = conn.execute(last).scalar()
    return int(share * _LOTS) if highest is None else int(highest) + 1


def retire(conn: Connection, ids: Collection[str]) -> None:
    """Take sentences out of every stream; their text and their history stay."""
    streams = queue.c.stream.in_(("active", "audit"))
    conn.execute(
        update(queue).where(queue.c.sentence_id.in_(ids), streams).values(stream="retired")
    )


def restore(conn: Connection, ids: Collection[str], audit_lots: int) -> None:
    """Put retired sentences back into the stream they came from."""
    stream = case((queue.c.lot < audit_lots, "audit"), else_="active")
    retired = queue.c.stream == "retired"
    conn.execute(update(queue).where(queue.c.sentence_id.in_(ids), retired).values(stream=stream))


def one(conn: Connection, id: str) -> Sentence | None:
    """A sentence by its id, without labels."""
    found = (
        conn.execute(select(sentences).where(sentences.c.id == id)).first() if is_key(id) else None
    )
    return None if found is None else bare(found)


def some(conn: Connection, ids: Sequence[str]) -> list[Sentence]:
    """Sentences by their ids, in the order asked for; unknown ids are passed over."""
    wanted = select(sentences).where(sentences.c.id.in_([id for id in ids if is_key(id)]))
    found: Mapping[str, Sentence] = {row.id: bare(row) for row in conn.execute(wanted)}
    return [found[id] for id in ids if id in found]


def page_after(
    conn: Connection, position: int, streams: Collection[str], unlabeled: bool, labeled: bool
) -> list[tuple[int, Sentence]]:
    """The next page of sentences with the labels that count: adjudicated, else the first annotator's, else the seed's.

    subtle: where a tag came later and nobody has looked for it, "not marked" means "not known", so that row is missing.
    """
    noted = loads(conn.execute(select(meta.c.value).where(meta.c.key == OPEN)).scalar()) or {}
    since = max(noted.values(), default=-1)
    answer = select(
        sentences, events.c.spans.label("answer"), events.c.sure, events.c.seq, queue.c.state
    ).join_from(sentences, queue)
    wanted: Select[Any] = answer.outerjoin(events, events.c.seq == queue.c.gold)
    wanted = wanted.where(sentences.c.position > position, queue.c.stream.in_(streams))
    if not unlabeled:
        wanted = wanted.where(queue.c.state == "done")
    if not labeled:
        wanted = wanted.where(queue.c.state != "done")
    return [
        (row.position, _labeled(row, since))
        for row in conn.execute(wanted.order_by(sentences.c.position).limit(PAGE))
    ]


def paged(given: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """The items in lists of `size`, the last one shorter."""
    items = iter(given)
    while page := list(islice(items, size)):
        yield page


def bare(row: Row[Any]) -> Sentence:
    """A sentence out of its row, without labels."""
    tokens, text = loads(row.tokens), loads(row.text)
    try:
        offsets = None if row.offsets is None else tuple((a, b) for a, b in loads(row.offsets))
        if (
            not isinstance(tokens, list)
            or not all(isinstance(token, str) for token in tokens)
            or not isinstance(text, str | None)
        ):
            raise TypeError
        return Sentence(row.id, tuple(tokens), (), text, offsets)
    except (TypeError, ValueError, SeqMixError) as error:
        raise StoreError(
            f"the store holds a sentence {row.id!r} that we did not write; restore the project from a backup"
        ) from error


def _labeled(row: Row[Any], since: int) -> Sentence:
    sentence = bare(row)
    tags = (
        loads(row.seed) or ()
        if row.answer is None
        else rows(marks_of(row.answer), ranges_of(row.sure), len(sentence))
    )
    known = (row.seq or 0) > since
    return sentence.with_tags(tags if known else [None if tag == OUTSIDE else tag for tag in tags])


def _refuse_known_ids(conn: Connection, page: Sequence[Sentence]) -> None:
    ids: set[str] = set()
    for sentence in page:
        if not is_key(sentence.id):
            raise DataError(
                "expected the id of a sentence to be 1 to 1000 bytes of whole characters, without NUL",
                text=sentence.id,
            )
        if sentence.id in ids:
            raise DataError("two sentences have the same id; ids must differ", text=sentence.id)
        ids.add(sentence.id)
    known = conn.execute(select(sentences.c.id).where(sentences.c.id.in_(ids)).limit(1)).scalar()
    if known is not None:
        raise DataError("two sentences have the same id; ids must differ", text=known)


def _seed(sentence: Sentence, tags: Collection[str]) -> list[Any]:
    """The tag rows to keep, once it is certain that the project knows their tags."""
    for row in sentence.tags:
        for name in (row,) if isinstance(row, str) else row or ():
            if name != OUTSIDE and not (
                prefixed(name) and name[:2] in ("B-", "I-") and name[2:] in tags
            ):
                raise TagError(
                    f"sentence {sentence.id!r} has a label that is no span of this project's tags {', '.join(tags)}",
                    text=name,
                )
    return plain_rows(sentence)


def _text(sentence: Sentence, position: int, key: str, labels: list[Any] | None) -> dict[str, Any]:
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


def _queued(id: str, key: str, stream: str, lot: int) -> dict[str, Any]:
    return {
        "sentence_id": id,
        "stream": stream,
        "state": "done" if stream == "seed" else "free",
        "lot": lot,
        "chance": int(key[:12], 16) / 16**12,
        "generation": -1,
        "rank": lot,
    }
