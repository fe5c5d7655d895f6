"""The values a store takes and gives, and what makes an answer a good one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from seqmix.data.scheme import tag
from seqmix.data.sentence import Row, Span
from seqmix.errors import DataError, StoreError, TagError

Kind = Literal["label", "skip", "undo", "adjudicate"]
Stream = Literal["active", "audit", "overlap", "seed"]
Ranges = tuple[tuple[int, int], ...]
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONGEST = 1e7  # seconds; a page left open over a vacation is no error


class Mark(NamedTuple):
    """Tokens `start` up to but not including `end`, marked by a person or a model."""

    start: int
    end: int
    tag: str


@dataclass(frozen=True)
class Annotator:
    """Somebody who answers."""

    id: int
    name: str
    admin: bool = False


@dataclass(frozen=True)
class Event:
    """One line of the history; it never changes."""

    seq: int
    sentence_id: str
    annotator_id: int
    kind: str  # Kind
    spans: tuple[Mark, ...]
    sure: Ranges | None  # the tokens the answer speaks of; None: all
    old: (
        Mapping[str, Any] | None
    )  # {"spans": …, "sure": …} of the answer before, by the same annotator
    seconds: float
    at: float
    stream: str  # Stream
    generation: int | None = None  # the ranking that chose the sentence
    undoes: int | None = None  # the seq an undo cancels


@dataclass(frozen=True)
class Answer:
    """What one annotator says of one sentence now."""

    seq: int
    sentence_id: str
    annotator_id: int
    annotator: str
    kind: str  # label, skip or adjudicate
    spans: tuple[Mark, ...]
    sure: Ranges | None
    seconds: float
    at: float
    stream: str


@dataclass(frozen=True)
class Rank:
    """One sentence of a ranking, which is a list: its place there is its rank."""

    sentence_id: str
    score: float
    suggestion: Mapping[str, Any] | None = (
        None  # {"spans": [{start, end, tag, confidence}], "confidence": …}
    )


@dataclass(frozen=True)
class Generation:
    """One finished training: what it learned from, how long it took, and what it says of the audit sentences."""

    number: int
    labeled: int  # sentences trained on
    tokens: int = 0
    spans: int = 0
    dev: Mapping[str, Any] | None = None
    audit: Sequence[Mapping[str, Any]] = ()  # [{"id": …, "marks": [[start, end, tag], …]}]
    seconds: Mapping[str, float] = field(default_factory=dict)  # by phase
    model: str | None = None  # its folder, relative to the project's
    at: float = 0.0


@dataclass(frozen=True)
class Generated:
    """A generated sentence as `Augmented.to_record` writes it, and whether a person refused it."""

    id: str
    generation: int
    record: Mapping[str, Any]
    vetoed: bool = False


@dataclass(frozen=True)
class Work:
    """What one annotator did: answers and skips that count now, and the time spent in all."""

    annotator: Annotator
    labeled: int
    skipped: int
    seconds: float


@dataclass(frozen=True)
class Counts:
    """How far a project is; every number counts sentences but the last two."""

    sentences: int = 0  # to be labeled: without the seed
    labeled: int = 0  # of these, answered
    audit: int = 0  # of the answered, those of the audit stream
    active: int = 0  # of the answered, the others
    held: int = 0  # open on somebody's page
    skipped: int = 0  # skipped by somebody and labeled by nobody
    overlap: int = 0  # answered by two or more
    seed: int = 0  # labeled before the project began
    mine: int = 0  # labeled by the annotator asked for
    events: int = 0  # seq of the newest event

    @property
    def left(self) -> int:
        """Sentences nobody has labeled yet."""
        return self.sentences - self.labeled


def checked_marks(marks: Iterable[Any], length: int, tags: Collection[str]) -> tuple[Mark, ...]:
    """Marks in order, once it is certain that each lies inside the sentence, has a known tag and overlaps no other."""
    found: list[Mark] = []
    for given in marks:
        try:
            mark = Mark(*given)
        except TypeError as error:
            raise TagError("a span is a start, an end and a tag", text=str(given)[:80]) from error
        if (
            type(mark.start) is not int
            or type(mark.end) is not int
            or not 0 <= mark.start < mark.end <= length
        ):
            raise TagError(
                f"a span must lie inside its sentence of {length} tokens",
                text=f"{mark.start} to {mark.end}",
            )
        if mark.tag not in tags:
            raise TagError(f"unknown tag; this project has {', '.join(tags)}", text=str(mark.tag))
        found.append(mark)
    found.sort()
    for one, other in pairwise(found):
        if other.start < one.end:
            raise TagError(
                "spans must not overlap",
                text=f"{one.tag} on tokens {one.start} to {one.end}, {other.tag} on {other.start} to {other.end}",
            )
    return tuple(found)


def checked_sure(sure: Iterable[Any] | None, marks: Sequence[Mark], length: int) -> Ranges | None:
    """The part an answer speaks of as ranges in order; None when that is the whole sentence. Who marks a span is sure of it."""
    if sure is None:
        return None
    taken = bytearray(length)
    for pair in [*sure, *((mark.start, mark.end) for mark in marks)]:
        if (
            not isinstance(pair, tuple | list)
            or len(pair) != 2
            or any(type(n) is not int for n in pair)
            or not 0 <= pair[0] < pair[1] <= length
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
    """The time spent, as a number that can be added up."""
    if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
        raise DataError("seconds must be a number, 0 or more", text=str(seconds)[:80])
    return min(float(seconds), _LONGEST)


def checked_name(name: str, what: str, longest: int = 200) -> str:
    """A name any database can hold and any page can show: not empty, printable, not too long."""
    if not name or len(name) > longest or not name.isprintable() or name != name.strip():
        raise DataError(
            f"expected {what} of 1 to {longest} printable characters, without space around it",
            text=name,
        )
    return name


def is_key(id: str) -> bool:
    """Whether any database can look this up: whole characters, no NUL, not endless."""
    try:
        return 0 < len(id.encode()) <= 1000 and "\0" not in id
    except UnicodeEncodeError:
        return False


def rows(marks: Iterable[Mark], sure: Ranges | None, length: int) -> tuple[Row, ...]:
    """An answer as BIO tag rows; outside the part that is sure they are missing."""
    tags: list[Row] = list(tag((Span(m.start, m.end, m.tag) for m in marks), length))
    if sure is None:
        return tuple(tags)
    known = {at for start, end in sure for at in range(start, end)}
    return tuple(row if at in known else None for at, row in enumerate(tags))


def digest(tokens: Sequence[str]) -> str:
    """The same for the same tokens: how duplicates are found, and the id of a generated sentence."""
    return sha256(json.dumps(list(tokens)).encode()).hexdigest()[:32]


def dumps(value: Any) -> str:
    """JSON in ASCII, which every database holds: NUL and half surrogate pairs are escaped.

    subtle: two halves side by side would be read back as one character, so they are refused.
    """
    text = json.dumps(value, separators=(",", ":"))
    if "\\ud" in text and _HALVES.search(json.dumps(value, ensure_ascii=False)):
        raise DataError(
            "two halves of a surrogate pair stand side by side; expected whole characters",
            text=text,
        )
    return text


def loads(text: str | None) -> Any:
    """The inverse of `dumps`; None stays None."""
    try:
        return None if text is None else json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            "the store holds a value that we did not write; restore the project from a backup"
        ) from error
