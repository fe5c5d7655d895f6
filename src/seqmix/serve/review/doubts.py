"""The list of answers in doubt, most likely error first: computed, listed, kept.

A doubt is about one answer: when that is corrected or taken back, the doubt is gone. What a person
has kept is not asked again until the answer changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, delete, insert, or_, select, update

from seqmix.errors import NotFoundError
from seqmix.serve.progress.agreement import conflicts
from seqmix.serve.review.evidence import Doubt, inconsistencies, together
from seqmix.serve.store.records import Annotator, dumps, is_key, loads
from seqmix.serve.store.schema import doubts, events, queue
from seqmix.serve.store.sentences import read_labeled
from seqmix.serve.store.store import Store

CHECKED = "doubts"  # note: what was compared last
REVIEW_NOW = "review_now"  # note: somebody wants models to judge the answers
JUDGED = "doubts_judged"  # note: when models judged the answers, and how many
_MOST = 5000  # doubts of which the list is made
_DIFFER = 0.5  # how likely an answer is wrong that another annotator contradicts
_ALIVE = or_(
    doubts.c.seq == queue.c.gold,
    and_(doubts.c.seq.is_(None), queue.c.gold.is_(None), queue.c.stream == "seed"),
)


@dataclass(frozen=True)
class Review:
    """An answer to look at again, and all that speaks against it."""

    sentence_id: str
    seq: int | None
    score: float
    doubts: tuple[Doubt, ...]  # the strongest first


def compare_answers(store: Store) -> int:
    """Look for the same text with different tags and for annotators who differ; return how many."""
    gold = gold_events(store)
    sentences = [sentence for sentence in read_labeled(store) if sentence.labeled]
    written = write_doubts(store, "inconsistent", inconsistencies(sentences), gold)
    differing = [
        Doubt(conflict.sentence.id, "annotators", _DIFFER, {"n": len(conflict.answers)})
        for conflict in conflicts(store, limit=_MOST)
    ]
    return written + write_doubts(store, "annotators", differing, gold)


def gold_events(store: Store) -> dict[str, int | None]:
    """Return the event of the answer that counts by sentence; None for labels of the seed."""
    labeled = select(queue.c.sentence_id, queue.c.gold).where(queue.c.state == "done")
    with store.reading() as conn:
        return {row.sentence_id: row.gold for row in conn.execute(labeled)}


def write_doubts(
    store: Store, kind: str, new: Iterable[Doubt], gold: Mapping[str, int | None]
) -> int:
    """Replace the doubts of a kind about the answers `gold`; what was kept stays so."""
    is_kind = doubts.c.kind == kind
    with store.writing() as conn:
        kept = {
            row.sentence_id: row.seq
            for row in conn.execute(select(doubts).where(is_kind, doubts.c.kept_at.is_not(None)))
        }
        gone = [id for id, seq in kept.items() if gold.get(id, -1) != seq]
        for id in gone:
            conn.execute(delete(doubts).where(is_kind, doubts.c.sentence_id == id))
        conn.execute(delete(doubts).where(is_kind, doubts.c.kept_at.is_(None)))
        rows = [
            {
                "sentence_id": doubt.sentence_id,
                "kind": kind,
                "seq": gold[doubt.sentence_id],
                "score": float(doubt.score),
                "details": dumps(dict(doubt.details)),
            }
            for doubt in new
            if doubt.sentence_id in gold and (doubt.sentence_id not in {*kept} - {*gone})
        ]
        if rows:
            conn.execute(insert(doubts), rows)
    return len(rows)


def list_reviews(store: Store, reader: Annotator, limit: int = 50) -> tuple[list[Review], int]:
    """Return the answers in doubt that somebody may see, the most likely error first, and how many.

    Who is no admin sees their own answers only, and not that another annotator differs: second
    answers are given without knowing the first.
    """
    with store.reading() as conn:
        by_sentence: dict[str, list[Doubt]] = {}
        for doubt in _open_doubts(conn, reader):
            by_sentence.setdefault(doubt.sentence_id, []).append(doubt)
    reviews = [
        Review(id, about[0].seq, together(doubt.score for doubt in about), tuple(about))
        for id, about in by_sentence.items()
    ]
    reviews.sort(key=lambda review: (-review.score, review.sentence_id))
    return reviews[:limit], len(reviews)


def _open_doubts(conn: Connection, reader: Annotator) -> Sequence[Doubt]:
    rows: Any = (
        select(doubts)
        .join(queue, queue.c.sentence_id == doubts.c.sentence_id)
        .where(doubts.c.kept_at.is_(None), _ALIVE)
        .order_by(doubts.c.score.desc(), doubts.c.kind)
        .limit(_MOST)
    )
    if not reader.admin:
        rows = rows.join(events, events.c.seq == doubts.c.seq).where(
            events.c.annotator_id == reader.id,
            events.c.kind == "label",
            doubts.c.kind != "annotators",
        )
    return [
        Doubt(row.sentence_id, row.kind, row.score, loads(row.details), row.seq)
        for row in conn.execute(rows)
    ]


def keep_answer(
    store: Store, reader: Annotator, sentence_id: str, seq: int | None, keep: bool = True
) -> int:
    """Note that an answer in doubt is right, or no longer; return how many doubts that settles."""
    at = time.time()
    same = doubts.c.seq.is_(None) if seq is None else doubts.c.seq == seq
    about = and_(doubts.c.sentence_id == sentence_id, same)
    with store.writing() as conn:
        who = select(events.c.annotator_id).where(events.c.seq == seq, events.c.kind == "label")
        mine = seq is not None and conn.execute(who).scalar() == reader.id
        if not is_key(sentence_id) or not (reader.admin or mine):
            raise NotFoundError("doubt about an answer of yours to", sentence_id)
        values = (
            {"kept_by": reader.id, "kept_at": at} if keep else {"kept_by": None, "kept_at": None}
        )
        changed = conn.execute(update(doubts).where(about).values(**values)).rowcount
    if not changed:
        raise NotFoundError("doubt about", sentence_id)
    return int(changed)
