"""Tags and spans, and which tag sequences are legal.

All schemes are read by conlleval's rule, which `seqmix.data.spans` states.
So IOB1, BIO (IOB2), BIOES, BILOU and IO need only one reader, and a stray I- starts a span.
Tags without a prefix (NOUN, VERB) are one span per token if the data has no O, else runs of the
same tag (IO).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from seqmix.data.spans import OUTSIDE, Span, prefixed, spans, split_tag
from seqmix.errors import TagError

Scheme = Literal["BIO", "IOB1", "BIOES", "BILOU", "IO", "tokens"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
_PREFIXES: dict[str, str] = {"BIO": "BI", "IOB1": "BI", "BIOES": "BIES", "BILOU": "BILU", "IO": "I"}


def tag(labels: Iterable[Span], length: int, scheme: Scheme = "BIO") -> list[str]:
    """Return spans as tags: the inverse of `spans`; overlapping spans are an error."""
    tags = [OUTSIDE] * length
    if scheme == "tokens":
        raise TagError(
            "the scheme 'tokens' has one tag per token and no spans; convert the tags themselves"
        )
    previous: Span | None = None
    for span in sorted(labels, key=lambda s: (s.start, s.end)):
        if not 0 <= span.start < span.end <= length:
            raise TagError(
                f"a span must lie inside its sentence of {length} tokens", text=str(span)
            )
        if previous is not None and span.start < previous.end:
            raise TagError(f"spans must not overlap: {previous} and {span}")
        tags[span.start : span.end] = _spell(span, previous, scheme)
        previous = span
    return tags


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Return the same spans in another scheme; IO cannot separate neighbors of one type."""
    return list(tags) if scheme == "tokens" else tag(spans(tags), len(tags), scheme)


def repair(tags: Sequence[str]) -> list[str]:
    """Return legal BIO tags with the same spans: a stray I- becomes B-."""
    return convert(tags, "BIO")


def detect(tags: Iterable[str]) -> Scheme:
    """Guess the scheme of a file from its tags, with sentences separated by O.

    subtle: in IOB1 a B- occurs only right behind a span of the same type. So a B- anywhere else
    means BIO, and stray I- tags in a BIO file do not make it IOB1.
    """
    prefixes: set[str] = set()
    lone_b = False
    before, kind = OUTSIDE, ""
    for name in tags:
        prefix, type = split_tag(name)
        prefixes.add(prefix if prefixed(name) or name == OUTSIDE else "plain")
        lone_b |= prefix == "B" and not (before != OUTSIDE and kind == type)
        before, kind = prefix, type
    if "plain" in prefixes:
        return "IO" if OUTSIDE in prefixes else "tokens"
    if prefixes & set("LU"):
        return "BILOU"
    if prefixes & set("ES"):
        return "BIOES"
    if "I" in prefixes and not lone_b:
        return "IOB1" if "B" in prefixes else "IO"
    return "BIO"


def is_legal(tags: Sequence[str], scheme: Scheme = "BIO") -> bool:
    """Whether a strict reader of the scheme would accept the tags."""
    if scheme == "tokens":
        return True
    if any(
        name != OUTSIDE and (not prefixed(name) or name[0] not in _PREFIXES[scheme])
        for name in tags
    ):
        return False
    return convert(tags, scheme) == list(tags)


class Tags(Protocol):
    """A tag set, or anything else with tags in an order."""

    @property
    def tags(self) -> Sequence[str]:
        """The tags."""
        ...


def legal_moves(tag_set: Tags) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which tags may start a sentence [n], follow each other [n, n] and end one [n].

    Tag sets without B- (IO, part of speech) allow everything.
    """
    tags = [OUTSIDE, *tag_set.tags]  # the O in front represents both ends of the sentence
    if not any(name.startswith("B-") for name in tags):
        free = np.ones((len(tags), len(tags)), dtype=bool)
        return free[0, 1:], free[1:, 1:], free[1:, 0]
    parts = [split_tag(name) for name in tags]
    # Types as numbers, since numpy removes NULs from the end of strings.
    numbers = {type: number for number, (_, type) in enumerate(parts)}
    prefixes = np.array([prefix for prefix, _ in parts])
    types = np.array([numbers[type] for _, type in parts])
    opens, continues = np.isin(prefixes, ("B", "I")), np.isin(prefixes, ("I", "E", "L"))
    inside = opens[:, None] & continues & (types[:, None] == types)
    starts = np.broadcast_to(~continues, inside.shape)
    if any(name[:2] in ("E-", "L-") for name in tags):  # in BIOES an open span must reach its E
        starts = starts & ~opens[:, None]
    moves = inside | starts
    return moves[0, 1:], moves[1:, 1:], moves[1:, 0]


def _spell(span: Span, previous: Span | None, scheme: Scheme) -> list[str]:
    n = span.end - span.start
    if scheme in ("BIOES", "BILOU"):
        end, single = ("E", "S") if scheme == "BIOES" else ("L", "U")
        prefixes = single if n == 1 else "B" + "I" * (n - 2) + end
    elif scheme == "IO":
        prefixes = "I" * n
    else:
        adjoins = previous is not None and previous.end == span.start and previous.type == span.type
        prefixes = ("B" if scheme == "BIO" or adjoins else "I") + "I" * (n - 1)
    return [f"{prefix}-{span.type}" for prefix in prefixes]
