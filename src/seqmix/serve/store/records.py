"""The values that a store takes and returns, and the checks of an answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

from seqmix.data.scheme import tag
from seqmix.data.sentence import Row
from seqmix.data.spans import Span
from seqmix.errors import DataError, StoreError, TagError

STREAMS = ("active", "audit", "seed")
BULK = "bulk"  # the stream of answers that were accepted many at a time
PAGE = 500  # rows read in one go
Ranges = tuple[tuple[int, int], ...]
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONGEST = 1e7  # seconds; a page may be left open over a vacation


class Mark(NamedTuple):
    """Tokens `start` up to but not including `end`, marked by a person or a model."""

    start: int
    end: int
    tag: str


@dataclass(frozen=True)
class Annotator:
    """A person who answers."""

    id: int
    name: str
    admin: bool = False


@dataclass(frozen=True)
class Event:
    """An entry of the history; it never changes."""

    seq: int
    sentence_id: str
    annotator_id: int
    kind: str  # label, skip, discard, undo or adjudicate
    spans: tuple[Mark, ...]
    sure: Ranges | None  # the tokens the answer is about; None: all
    old: Mapping[str, Any] | None  # {"spans": …, "sure": …} of the annotator's previous answer
    seconds: float
    at: float
    stream: str  # active, audit, overlap, bulk or seed
    generation: int | None = None  # the ranking that chose the sentence
    undoes: int | None = None  # the seq an undo cancels
    batch: int | None = None  # the batch it belongs to
    shown: Mapping[str, Any] | None = None  # {source: [spans offered, kept, kind, model]}


@dataclass(frozen=True)
class Answer:
    """An annotator's current answer to a sentence, or an adjudication."""

    seq: int
    sentence_id: str
    annotator_id: int
    annotator: str
    kind: str  # label, skip, discard or adjudicate
    spans: tuple[Mark, ...]  # with the tags of now
    sure: Ranges | None
    seconds: float
    at: float
    stream: str
    generation: int | None = None  # the ranking that chose the sentence
    unasked: frozenset[str] = frozenset()  # the tags nobody looked for then
    open: tuple[Any, ...] = ()  # spans whose tag was split since; not part of what is sure


@dataclass(frozen=True)
class Rank:
    """A sentence of a ranking, which is a list: its place there is its rank."""

    sentence_id: str
    score: float
    suggestion: Mapping[str, Any] | None = None  # as `suggestions.suggestion` returns it


@dataclass(frozen=True)
class Notes:
    """What a training leaves for the next one and for the page."""

    seq: int = 0  # the last event it has read
    answered: int | None = None  # answers it could learn from
    augmentation: Mapping[str, Any] | None = None  # how many sentences SeqMix was asked for
    pool: Mapping[str, int] | None = None  # how many of the unlabeled sentences are ranked
    stage: int | None = None  # 1 plain, 2 on an encoder that read the text, 3 taught by teachers
    basis: str | None = None  # what tells that encoder and those teachers from others
    tag_change: int | None = None  # the last change of the tags it has read

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are known."""
        return {key: value for key, value in vars(self).items() if value is not None}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Notes:
        """Return the notes that `to_json` wrote."""
        names = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in names})


@dataclass(frozen=True)
class Generation:
    """A finished training: what it learned from, how long it took, its audit predictions."""

    number: int
    labeled: int  # sentences trained on
    tokens: int = 0
    spans: int = 0
    notes: Notes = Notes()
    audit: Sequence[Mapping[str, Any]] = ()  # [{"id": …, "marks": [[start, end, tag], …]}]
    seconds: Mapping[str, float] = field(default_factory=dict)  # by phase
    model: str | None = None  # its folder, relative to the project's
    at: float = 0.0


@dataclass(frozen=True)
class Generated:
    """A generated sentence as `Augmented.to_record` writes it, and whether it was vetoed."""

    id: str
    generation: int
    record: Mapping[str, Any]
    vetoed: bool = False


@dataclass(frozen=True)
class Work:
    """How many answers of an annotator count now, by kind, and the time spent in all."""

    annotator: Annotator
    labeled: int  # one by one
    bulk: int  # accepted many at a time
    skipped: int
    discarded: int
    seconds: float

    @property
    def each(self) -> float | None:
        """Seconds for an answer given one by one; None: not known."""
        answers = self.labeled + self.skipped + self.discarded
        return self.seconds / answers if answers and self.seconds else None


@dataclass(frozen=True)
class Counts:
    """How many sentences a project has and how many of them are answered."""

    sentences: int = 0  # all but the seed
    labeled: int = 0  # of these, answered
    audit: int = 0  # of the answered, those of the audit stream
    active: int = 0  # of the answered, the others
    held: int = 0  # open on somebody's page
    skipped: int = 0  # skipped by somebody and labeled by nobody
    discarded: int = 0  # bad text: not asked, not trained on, not exported
    discarded_audit: int = 0  # of these, in the audit stream
    overlap: int = 0  # answered by two or more
    seed: int = 0  # labeled before the project began
    bulk: int = 0  # of the active, accepted many at a time: no model learns from them
    mine: int = 0  # labeled by the annotator who asks
    events: int = 0  # seq of the newest event
    by_models: int = 0  # of the answered, those that only a language model answered

    @property
    def left(self) -> int:
        """Sentences nobody has labeled or discarded yet."""
        return self.sentences - self.labeled - self.discarded


def checked_marks(marks: Iterable[Any], length: int, tags: Collection[str]) -> tuple[Mark, ...]:
    """Return marks in order; refuse one that is outside, has an unknown tag or overlaps."""
    checked: list[Mark] = []
    for item in marks:
        try:
            mark = Mark(*item)
        except TypeError as error:
            raise TagError("a span is a start, an end and a tag", text=str(item)[:80]) from error
        if not _inside(mark.start, mark.end, length):
            raise TagError(
                f"a span must lie inside its sentence of {length} tokens",
                text=f"{mark.start} to {mark.end}",
            )
        if mark.tag not in tags:
            raise TagError(f"unknown tag; this project has {', '.join(tags)}", text=str(mark.tag))
        checked.append(mark)
    checked.sort()
    for a, b in pairwise(checked):
        if b.start < a.end:
            raise TagError(
                "spans must not overlap",
                text=f"{a.tag} on tokens {a.start} to {a.end}, {b.tag} on {b.start} to {b.end}",
            )
    return tuple(checked)


def _inside(start: object, end: object, length: int) -> bool:
    return type(start) is int and type(end) is int and 0 <= start < end <= length


def checked_sure(sure: Iterable[Any] | None, marks: Sequence[Mark], length: int) -> Ranges | None:
    """Return the part an answer is about as ranges in order, every mark included; None: all."""
    if sure is None:
        return None
    taken = bytearray(length)
    for pair in [*sure, *((mark.start, mark.end) for mark in marks)]:
        if not (
            isinstance(pair, tuple | list) and len(pair) == 2 and _inside(pair[0], pair[1], length)
        ):
            raise DataError(
                f"a sure part must lie inside its sentence of {length} tokens", text=str(pair)
            )
        taken[pair[0] : pair[1]] = b"\1" * (pair[1] - pair[0])
    if not any(taken):
        raise DataError("the answer says that no part of the sentence is sure; skip it instead")
    if all(taken):
        return None
    edges = [
        at for at in range(length + 1) if (at < length and taken[at]) != (at > 0 and taken[at - 1])
    ]
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def checked_seconds(seconds: float) -> float:
    """Return the time spent on an answer, at most some months."""
    if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
        raise DataError("seconds must be a number, 0 or more", text=str(seconds)[:80])
    return min(float(seconds), _LONGEST)


def checked_name(name: str, what: str, longest: int = 200) -> str:
    """Return a name that any database can hold and any page can show; refuse any other."""
    if not name or len(name) > longest or not name.isprintable() or name != name.strip():
        raise DataError(
            f"expected {what} of 1 to {longest} printable characters without space around it",
            text=name,
        )
    return name


def is_key(id: str) -> bool:
    """Whether any database can look this up: whole characters, no NUL, not too long."""
    try:
        return 0 < len(id.encode()) <= 1000 and "\0" not in id
    except UnicodeEncodeError:
        return False


def rows(marks: Iterable[Mark], sure: Ranges | None, length: int) -> tuple[Row, ...]:
    """Return an answer as BIO tags, None outside the sure part."""
    tags: list[Row] = list(tag((Span(m.start, m.end, m.tag) for m in marks), length))
    if sure is None:
        return tuple(tags)
    inside = {at for start, end in sure for at in range(start, end)}
    return tuple(row if at in inside else None for at, row in enumerate(tags))


def digest(tokens: Sequence[str]) -> str:
    """Return a hash of the tokens, equal for duplicates; the id of a generated sentence."""
    return sha256(json.dumps(list(tokens)).encode()).hexdigest()[:32]


def dumps(value: Any) -> str:
    """Return JSON in ASCII, which every database holds: NUL and lone surrogates are escaped.

    Two halves side by side would be read back as one character, so they are refused.
    """
    text = json.dumps(value, separators=(",", ":"))
    if "\\ud" in text and _HALVES.search(json.dumps(value, ensure_ascii=False)):
        raise DataError(
            "two halves of a surrogate pair are side by side; expected whole characters",
            text=text,
        )
    return text


def loads(text: str | None) -> Any:
    """Return the value that `dumps` wrote; None stays None."""
    try:
        return None if text is None else json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            "the store holds a value that seqmix did not write; restore the project from a backup"
        ) from error
