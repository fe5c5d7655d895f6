"""Tags <-> spans, and what makes a tag sequence legal.

One reading serves every scheme, conlleval's: a span starts at B, S or U, after E, L, S or U, after O, and wherever the type
changes; it ends just before the next start or O. So IOB1, BIO (IOB2), BIOES, BILOU and IO need no reader of their own, and a
stray I- starts a span, which is what conlleval has always done. Tags without a prefix (NOUN, VERB) are one span a token when
the data has no O, and runs of the same tag (IO) when it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from seqmix.data.sentence import Span
from seqmix.data.tagset import OUTSIDE, TagSet
from seqmix.errors import TagError

Scheme = Literal["BIO", "IOB1", "BIOES", "BILOU", "IO", "tokens"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
_OPENS, _CLOSES = "BSU", "ELSU"
_PREFIXES: dict[str, str] = {"BIO": "BI", "IOB1": "BI", "BIOES": "BIES", "BILOU": "BILU", "IO": "I"}


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of one tagged sentence, exactly as conlleval counts them.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
    [Span(start=0, end=2, type='PER'), Span(start=3, end=4, type='LOC')]
    """
    found: list[Span] = []
    start, before, kind = 0, OUTSIDE, ""
    for at, tag in enumerate((*tags, OUTSIDE)):
        prefix, type = _parts(tag)
        if before != OUTSIDE and (
            prefix == OUTSIDE or type != kind or prefix in _OPENS or before in _CLOSES
        ):
            found.append(Span(start, at, kind))
            before = OUTSIDE
        if prefix != OUTSIDE and before == OUTSIDE:
            start = at
        before, kind = prefix, type
    return found


def token_spans(tags: Sequence[str]) -> list[Span]:
    """One span a token: how part-of-speech tags are scored."""
    return [Span(at, at + 1, tag) for at, tag in enumerate(tags)]


def tag(found: Iterable[Span], length: int, scheme: Scheme = "BIO") -> list[str]:
    """Spell spans as tags: the inverse of `spans`. Overlapping spans are an error."""
    tags = [OUTSIDE] * length
    if scheme == "tokens":
        raise TagError(
            "the scheme 'tokens' has one tag a token and no spans; convert the tags themselves"
        )
    previous: Span | None = None
    for span in sorted(found, key=lambda s: (s.start, s.end)):
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
    """The same spans in another scheme. IO joins neighbors of one type: that is all it can say."""
    return list(tags) if scheme == "tokens" else tag(spans(tags), len(tags), scheme)


def repair(tags: Sequence[str]) -> list[str]:
    """The nearest legal BIO sequence: a stray I- becomes B-, the spans stay what conlleval sees."""
    return convert(tags, "BIO")


def detect(tags: Iterable[str]) -> Scheme:
    """Guess the scheme from the tags of a file, sentences separated by O.

    subtle: IOB1 and BIO differ only in who starts a span. In IOB1 a B- stands only right behind a span of its own type, so one B-
    anywhere else means BIO, and stray I- tags in a BIO file do not make it IOB1.
    """
    prefixes: set[str] = set()
    lone_b = False
    before, kind = OUTSIDE, ""
    for name in tags:
        prefix, type = _parts(name)
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
    """Whether the tags are spelled as the scheme demands, so that a strict reader would take them."""
    if scheme == "tokens":
        return True
    if any(
        name != OUTSIDE and (not prefixed(name) or name[0] not in _PREFIXES[scheme])
        for name in tags
    ):
        return False
    return convert(tags, scheme) == list(tags)


def legal_moves(tag_set: TagSet) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Which tags may start a sentence [n], follow each other [n, n] and end one [n], for BIO, BIOES and BILOU tag sets.

    Tag sets without B- (IO, part of speech) allow everything.
    """
    tags = [OUTSIDE, *tag_set.tags]  # O in front stands for both ends of the sentence
    if not any(name.startswith("B-") for name in tags):
        free = np.ones((len(tags), len(tags)), dtype=bool)
        return free[0, 1:], free[1:, 1:], free[1:, 0]
    parts = [_parts(name) for name in tags]
    numbers = {
        type: number for number, (_, type) in enumerate(parts)
    }  # subtle: numpy takes NULs off the end of strings
    prefixes, types = (
        np.array([prefix for prefix, _ in parts]),
        np.array([numbers[type] for _, type in parts]),
    )
    opens, goes_on = np.isin(prefixes, ("B", "I")), np.isin(prefixes, ("I", "E", "L"))
    within = opens[:, None] & goes_on & (types[:, None] == types)
    anew = np.broadcast_to(~goes_on, within.shape)
    if any(name[:2] in ("E-", "L-") for name in tags):  # BIOES: a span once opened runs to its E
        anew = anew & ~opens[:, None]
    moves = within | anew
    return moves[0, 1:], moves[1:, 1:], moves[1:, 0]


def prefixed(name: str) -> bool:
    """Whether a tag carries one of the schemes' prefixes, as B-PER does and NOUN or -LRB- do not."""
    return name[1:2] == "-" and name[0] in "BIESLU"


def _parts(name: str) -> tuple[str, str]:
    """B-PER -> (B, PER); O -> (O, ''); a bare PER reads as I-PER; only the first hyphen splits."""
    if name == OUTSIDE:
        return OUTSIDE, ""
    if prefixed(name):
        return name[0], name[2:]
    return "I", name


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
