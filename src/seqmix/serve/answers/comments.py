"""Comments and flags: what people say about a sentence; a flag is a comment without words."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import func, insert, select, update

from seqmix.errors import DataError, NotFoundError
from seqmix.serve.store.records import is_key
from seqmix.serve.store.schema import annotators, comments, sentences
from seqmix.serve.store.store import Store

LONGEST = 2000  # characters of a comment
MOST = 100  # comments on a sentence
_OPEN = {"resolved_by": None, "resolved_at": None}


@dataclass(frozen=True)
class Comment:
    """What somebody said about a sentence."""

    id: int
    sentence_id: str
    annotator_id: int
    annotator: str
    at: float
    text: str  # empty: a flag
    resolved_at: float | None = None


def add_comment(
    store: Store, annotator_id: int, sentence_id: str, text: str, now: float | None = None
) -> Comment:
    """Comment on a sentence, or flag it with no text; a flag that is there already is returned."""
    text = text.strip()
    if len(text) > LONGEST or "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise DataError(f"expected a comment of at most {LONGEST} characters", text=text[:80])
    with store.writing() as conn:
        known = select(sentences.c.id).where(sentences.c.id == sentence_id)
        if not is_key(sentence_id) or conn.execute(known).first() is None:
            raise NotFoundError("sentence", sentence_id)
        there = list_comments(store, [sentence_id])
        for comment in there:
            if (comment.annotator_id, comment.text) == (annotator_id, text):
                return comment  # said already, or sent twice
        on_sentence = select(func.count()).where(comments.c.sentence_id == sentence_id)
        if conn.execute(on_sentence).scalar_one() >= MOST:
            raise DataError(f"a sentence has at most {MOST} comments")
        values = {"sentence_id": sentence_id, "annotator_id": annotator_id, "text": text}
        at = time.time() if now is None else now
        (id,) = conn.execute(insert(comments).values(**values, at=at)).inserted_primary_key or (0,)
        return next(c for c in list_comments(store, [sentence_id]) if c.id == id)


def resolve_comment(
    store: Store, comment_id: int, by: int, resolved: bool = True, now: float | None = None
) -> None:
    """Note that a comment is dealt with, or that it is not after all; it is never deleted."""
    at = time.time() if now is None else now
    values = {"resolved_by": by, "resolved_at": at} if resolved else _OPEN
    changed = update(comments).where(comments.c.id == comment_id).values(values)
    with store.writing() as conn:
        if conn.execute(changed).rowcount == 0:
            raise NotFoundError("comment", comment_id)


def list_comments(
    store: Store, ids: Collection[str], reader: int | None = None, resolved: bool = False
) -> Sequence[Comment]:
    """Return the comments on some sentences in order; a `reader` sees their own only."""
    statement = (
        select(comments, annotators.c.name)
        .join(annotators, annotators.c.id == comments.c.annotator_id)
        .where(comments.c.sentence_id.in_([id for id in ids if is_key(id)]))
        .order_by(comments.c.id)
    )
    if reader is not None:
        statement = statement.where(comments.c.annotator_id == reader)
    if not resolved:
        statement = statement.where(comments.c.resolved_at.is_(None))
    with store.reading() as conn:
        return [
            Comment(
                row.id,
                row.sentence_id,
                row.annotator_id,
                row.name,
                row.at,
                row.text,
                row.resolved_at,
            )
            for row in conn.execute(statement)
        ]


def find_comment(store: Store, comment_id: int) -> Comment:
    """Return a comment, resolved or not."""
    of = select(comments.c.sentence_id).where(comments.c.id == comment_id)
    with store.reading() as conn:
        sentence_id = conn.execute(of).scalar()
        for comment in list_comments(store, [sentence_id or ""], resolved=True):
            if comment.id == comment_id:
                return comment
    raise NotFoundError("comment", comment_id)
