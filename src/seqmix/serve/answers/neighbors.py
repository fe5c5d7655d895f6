"""The sentences before and after a sentence in its document: their text, and nobody's answers."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from seqmix.data.sentence import Sentence
from seqmix.errors import NotFoundError
from seqmix.serve.store.records import is_key
from seqmix.serve.store.schema import sentences
from seqmix.serve.store.sentences import bare
from seqmix.serve.store.store import Store

NEAR = 3  # sentences on either side


@dataclass(frozen=True)
class Neighbors:
    """What stands around a sentence; both are empty where its document is unknown."""

    document: str | None
    before: tuple[Sentence, ...] = ()
    after: tuple[Sentence, ...] = ()


def neighbors(store: Store, id: str, near: int = NEAR) -> Neighbors:
    """Return the sentences of the same document that are next to a sentence, in its order."""
    here = select(sentences.c.position, sentences.c.document).where(sentences.c.id == id)
    with store.reading() as conn:
        place = conn.execute(here).first() if is_key(id) else None
        if place is None:
            raise NotFoundError("sentence", id)
        if place.document is None:
            return Neighbors(None)
        around = select(sentences).where(
            sentences.c.position.between(place.position - near, place.position + near),
            sentences.c.position != place.position,
            sentences.c.document == place.document,
        )
        rows = conn.execute(around.order_by(sentences.c.position)).all()
    return Neighbors(
        place.document,
        tuple(bare(row) for row in rows if row.position < place.position),
        tuple(bare(row) for row in rows if row.position > place.position),
    )
