"""Spans of tokens, entities of a text, and how tags spell them.

All schemes are read by conlleval's rule: a span starts at B, S or U, after E, L, S or U, after O,
and where the type changes; it ends before the next start or O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OUTSIDE = "O"
Offsets = tuple[tuple[int, int], ...]
_OPENS, _CLOSES = "BSU", "ELSU"


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens from `start` up to but not including `end`, of one type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A labeled part of a text: its characters from `start` up to but not including `end`."""

    text: str
    label: str
    start: int
    end: int
    probability: float | None = None  # of its least sure token, where a tagger predicted it


def spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans of one tagged sentence, exactly as conlleval counts them.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
    [Span(start=0, end=2, type='PER'), Span(start=3, end=4, type='LOC')]
    """
    result: list[Span] = []
    start, before, kind = 0, OUTSIDE, ""
    for at, tag in enumerate((*tags, OUTSIDE)):
        prefix, type = split_tag(tag)
        if before != OUTSIDE and (
            prefix == OUTSIDE or type != kind or prefix in _OPENS or before in _CLOSES
        ):
            result.append(Span(start, at, kind))
            before = OUTSIDE
        if prefix != OUTSIDE and before == OUTSIDE:
            start = at
        before, kind = prefix, type
    return result


def token_spans(tags: Sequence[str]) -> list[Span]:
    """Return one span per token, as part-of-speech tags are scored."""
    return [Span(at, at + 1, tag) for at, tag in enumerate(tags)]


def prefixed(name: str) -> bool:
    """Whether a tag has a prefix, as B-PER has and NOUN or -LRB- have not."""
    return name[1:2] == "-" and name[0] in "BIESLU"


def split_tag(name: str) -> tuple[str, str]:
    """Split a tag: B-PER -> (B, PER), O -> (O, ''), PER -> (I, PER)."""
    if name == OUTSIDE:
        return OUTSIDE, ""
    if prefixed(name):
        return name[0], name[2:]
    return "I", name
