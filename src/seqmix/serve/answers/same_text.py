"""The same text elsewhere: in the sentence, in a person's answers without it, in open sentences.

Tokens are compared as they are; on request in any case, or with other endings:

    Oslo, any case:        OSLO
    aspirin, any ending:   aspirins   (at most three letters differ at the end)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, select

from seqmix.errors import DataError, NotFoundError
from seqmix.serve.answers.patterns import like, pattern
from seqmix.serve.store.events import parse_marks, parse_ranges
from seqmix.serve.store.records import PAGE, Mark, Ranges, is_key, loads
from seqmix.serve.store.schema import current, events, queue, sentences
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory

LONGEST = 50  # tokens of a text that is looked for
AT_ONCE = 2000  # sentences of a kind that are read in one go
_ENDING = 3  # letters in which two forms of a word may differ at the end
_VARIANTS = 5
Place = tuple[int, int]


@dataclass(frozen=True)
class Cause:
    """The span that a person marked, and which texts are the same."""

    sentence_id: str
    start: int
    end: int
    tag: str
    ignore_case: bool = False
    endings: bool = False


@dataclass(frozen=True)
class Text:
    """Tokens to look for."""

    tokens: tuple[str, ...]
    ignore_case: bool = False
    endings: bool = False  # other endings of the words, too

    def places(self, tokens: Sequence[str]) -> list[Place]:
        """Return where the text is, without overlaps."""
        n, places, at = len(self.tokens), list[Place](), 0
        while at + n <= len(tokens):
            if all(map(self._same, self.tokens, tokens[at : at + n])):
                places.append((at, at + n))
                at += n
            else:
                at += 1
        return places

    def _same(self, a: str, b: str) -> bool:
        if self.ignore_case:
            a, b = a.casefold(), b.casefold()
        return a == b or (self.endings and is_form_of(a, b))

    def pattern(self) -> str:
        """Return a pattern of the JSON of all tokens that hold the text, and of some others."""
        cut = [self._stem(token) for token in self.tokens]
        return '"' + '","'.join(cut) + '"'

    def _stem(self, token: str) -> str:
        if not self.endings or not token.isalpha():
            return pattern(token)
        if len(token.casefold()) != len(token):
            return "%"
        return pattern(token[: max(len(token) - _ENDING, (len(token) + 2) // 2)]) + "%"


def is_form_of(a: str, b: str) -> bool:
    """Whether two words differ in a short ending only: heated, heats; but not Ada, Adele."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))
    longest, prefix = max(len(a), len(b)), len(list(same))
    return a.isalpha() and b.isalpha() and longest - prefix <= min(_ENDING, prefix - 1)


@dataclass(frozen=True)
class Unmarked:
    """An answer in which the text is not marked: where, and what the answer says otherwise."""

    sentence_id: str
    seq: int
    spans: tuple[Mark, ...]  # with the tags of now
    sure: Ranges | None
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Elsewhere:
    """In how many other sentences a text is."""

    answers: int  # of the person, in which it is not marked
    otherwise: int  # of the person, in which it is marked with another tag or in part
    audit: int  # of the person, in the audit, which only a look at each may change
    open: int  # sentences that nobody has answered
    more: bool  # these are not all
    variants: Mapping[str, int]  # how it is written there


def text_of(store: Store, cause: Cause) -> tuple[Text, tuple[str, ...]]:
    """Return the text of a span, to look for it, and the tokens of its sentence."""
    tokens_of = select(sentences.c.tokens).where(sentences.c.id == cause.sentence_id)
    with store.reading() as conn:
        row = conn.execute(tokens_of).first() if is_key(cause.sentence_id) else None
    if row is None:
        raise NotFoundError("sentence", cause.sentence_id)
    tokens, start, end = tuple(loads(row.tokens)), cause.start, cause.end
    if not 0 <= start < end <= len(tokens) or end - start > LONGEST:
        raise DataError(
            f"expected a span of 1 to {LONGEST} tokens inside its sentence of {len(tokens)} tokens",
            text=f"{start} to {end}",
        )
    return Text(tokens[start:end], cause.ignore_case, cause.endings), tokens


def elsewhere(store: Store, annotator_id: int, text: Text, cause: Cause) -> Elsewhere:
    """Look for a text everywhere but in audit sentences that wait for their turn."""
    variants, n = Counter[str](), Counter[str]()
    with store.reading() as conn:
        tags = store.tag_history()
        answers = conn.execute(_answers(conn, text, annotator_id).limit(AT_ONCE)).all()
        opened = conn.execute(_open(conn, text).limit(AT_ONCE)).all()
    for row in answers:
        tokens = loads(row.tokens)
        free, otherwise = _divided(row, text.places(tokens), tags, cause.tag)
        if row.id == cause.sentence_id:
            continue
        n["otherwise"] += bool(otherwise)
        n["audit" if row.stream == "audit" else "answers"] += bool(free)
        variants.update(_written(tokens, free) if row.stream != "audit" else ())
    for row in opened:
        tokens = loads(row.tokens)
        places = text.places(tokens) if row.id != cause.sentence_id else []
        n["open"] += bool(places)
        variants.update(_written(tokens, places))
    return Elsewhere(
        n["answers"],
        n["otherwise"],
        n["audit"],
        n["open"],
        AT_ONCE in (len(answers), len(opened)),
        dict(variants.most_common(_VARIANTS)),
    )


def unmarked(store: Store, annotator_id: int, text: Text, tag: str, but: str) -> Iterator[Unmarked]:
    """Yield a person's answers that do not mark a text; not those of the audit."""
    after = 0
    while True:
        with store.reading() as conn:
            tags = store.tag_history()
            later = _answers(conn, text, annotator_id).where(current.c.seq > after)
            rows = conn.execute(later.limit(PAGE)).all()
        for row in rows:
            free, _ = _divided(row, text.places(loads(row.tokens)), tags, tag)
            if free and row.id != but and row.stream != "audit":
                spans, _ = tags.marks(parse_marks(row.spans), tags.at_event(row.seq))
                yield Unmarked(row.id, row.seq, spans, parse_ranges(row.sure), tuple(free))
        if len(rows) < PAGE:
            return
        after = rows[-1].seq


def _divided(
    row: Row[Any], places: Sequence[Place], tags: TagHistory, tag: str
) -> tuple[list[Place], list[Place]]:
    """Return the places without a mark, and those that are marked, but not so.

    A span of a split tag is free if it may be this tag; an answer with others waits for a person.
    """
    spans, opened = tags.marks(parse_marks(row.spans), tags.at_event(row.seq))
    taken = [(mark.start, mark.end) for mark in spans]
    free = [(a, b) for a, b in places if not any(s < b and a < e for s, e in taken)]
    marked = [place for place in places if place not in free and Mark(*place, tag) not in spans]
    waiting = [m for m in opened if (m.start, m.end) not in places or tag not in m.choices]
    return ([] if waiting else free), marked


def _written(tokens: Sequence[str], places: Sequence[Place]) -> Iterator[str]:
    return (" ".join(tokens[start:end])[:100] for start, end in places)


def _answers(conn: Connection, text: Text, annotator_id: int) -> Select[Any]:
    """Return the statement of a person's labels of sentences that may hold a text."""
    decision = events.alias()
    judged = select(decision.c.seq).where(
        decision.c.seq == queue.c.gold, decision.c.kind == "adjudicate"
    )
    mine = and_(current.c.annotator_id == annotator_id, current.c.kind == "label")
    return (
        select(
            sentences.c.id,
            sentences.c.tokens,
            queue.c.stream,
            events.c.seq,
            events.c.spans,
            events.c.sure,
        )
        .join_from(current, events, events.c.seq == current.c.seq)
        .join(sentences, sentences.c.id == current.c.sentence_id)
        .join(queue, queue.c.sentence_id == current.c.sentence_id)
        .where(mine, ~judged.exists(), like(conn, sentences.c.tokens, text.pattern()))
        .order_by(current.c.seq)
    )


def _open(conn: Connection, text: Text) -> Select[Any]:
    """Return the statement of the open sentences that may hold a text.

    subtle: `exists`, since SQLite begins a join with the queue, which takes nine times as long.
    """
    is_open = select(queue.c.sentence_id).where(
        queue.c.sentence_id == sentences.c.id,
        queue.c.stream == "active",
        queue.c.state.in_(("free", "held")),
    )
    holds = like(conn, sentences.c.tokens, text.pattern())
    return select(sentences.c.id, sentences.c.tokens).where(holds, is_open.exists())
