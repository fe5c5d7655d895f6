"""Raw text to tokens with offsets, and character spans to token spans.

The tokenizer is deliberately plain: words, numbers, single punctuation marks.
Combining marks, emoji sequences and flags stay whole.
Scripts without spaces are cut into characters, so that any span can be expressed.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from seqmix.data.scheme import tag
from seqmix.data.spans import Offsets, Span
from seqmix.errors import DataError, TagError

Misaligned = Literal["error", "expand", "drop"]
_ZWJ = "\u200d"
_UNSPACED = (  # first and last code point of scripts without spaces between words
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3005, 0x3007),
    (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F), (0x20000, 0x3FFFF),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CharSpan:
    """Characters from `start` up to but not including `end`, of one type."""

    start: int
    end: int
    type: str


def tokenize(text: str) -> Offsets:
    """Return the offsets of the tokens of a raw text.

    >>> [("U.S. $4.50, don't")[a:b] for a, b in tokenize("U.S. $4.50, don't")]
    ['U', '.', 'S', '.', '$', '4.50', ',', 'don', "'t"]
    """
    tokens: list[tuple[int, int]] = []
    start, before = 0, " "
    for at, char in enumerate(text):
        kind = _kind(char)
        if kind == "+" and before == " ":
            kind = "."  # a mark without a base is a token
        if kind != "+" and not _joins(text, start, at, before, kind):
            if before != " ":
                tokens.append((start, at))
            start = at
        if kind != "+":
            before = kind
    if before != " ":
        tokens.append((start, len(text)))
    return tuple(tokens)


def checked_offsets(offsets: object, text: str, name: str = "offsets") -> Offsets:
    """Return untrusted offsets, which must be increasing pairs inside the text."""
    pairs: list[Any] = offsets if isinstance(offsets, list) else [offsets]
    before = 0
    for pair in pairs:
        if not (
            isinstance(pair, list | tuple) and len(pair) == 2 and all(type(n) is int for n in pair)
        ):
            raise DataError(
                f"expected {name} to be a list of [start, end] pairs, one per token", text=str(pair)
            )
        if not before <= pair[0] <= pair[1] <= len(text):
            raise DataError(
                f"expected {name} to go forward inside the text of {len(text)} characters",
                text=f"{pair[0]}-{pair[1]}",
            )
        before = pair[1]
    return tuple((a, b) for a, b in pairs)


def align(
    offsets: Sequence[tuple[int, int]],
    labels: Iterable[CharSpan],
    misaligned: Misaligned,
    counts: Counter[str],
    text: str,
) -> list[Span]:
    """Return character spans as token spans.

    A span that cuts a token is an error, is expanded to whole tokens, or is dropped; a span that
    overlaps a longer one is an error or is dropped.
    """
    aligned = (align_one(offsets, span, misaligned, counts, text) for span in labels)
    kept = [span for span in aligned if span is not None]
    return without_overlaps(offsets, kept, misaligned, counts, text)


def without_overlaps(
    offsets: Sequence[tuple[int, int]],
    aligned: Iterable[Span],
    misaligned: Misaligned,
    counts: Counter[str],
    text: str,
) -> list[Span]:
    """Return the longest of token spans that overlap, or raise an error."""
    kept: list[Span] = []
    taken = bytearray(len(offsets))
    for span in sorted(set(aligned), key=lambda s: (s.start - s.end, s.start, s.type)):
        if taken.find(1, span.start, span.end) >= 0:
            if misaligned == "error":
                raise TagError(
                    f"two spans overlap at token {span.start}, which tags cannot express; "
                    'misaligned="expand" or "drop" (--read misaligned=drop) keeps the longest',
                    text=text[offsets[span.start][0] : offsets[span.end - 1][1]],
                )
            counts["overlapping"] += 1
        else:
            kept.append(span)
            taken[span.start : span.end] = b"\1" * (span.end - span.start)
    return sorted(kept, key=lambda s: s.start)


def tags_from_text(
    offsets: Sequence[tuple[int, int]],
    labels: Iterable[CharSpan],
    misaligned: Misaligned,
    counts: Counter[str],
    text: str,
) -> list[str]:
    """Return character spans as BIO tags of these tokens."""
    return tag(align(offsets, labels, misaligned, counts, text), len(offsets))


def align_one(
    offsets: Sequence[tuple[int, int]],
    span: CharSpan,
    misaligned: Misaligned,
    counts: Counter[str],
    text: str,
) -> Span | None:
    """Return a character span as a token span, or None if it is dropped."""
    if not 0 <= span.start < span.end <= len(text):
        raise TagError(
            f"a span must lie inside its text of {len(text)} characters",
            text=f"{span.start}-{span.end} {span.type}",
        )
    # The first token that ends behind the span's start, and one past the last that starts in it.
    first = bisect_right(offsets, span.start, key=lambda o: o[1])
    last = bisect_left(offsets, span.end, key=lambda o: o[0])
    inside = first < last
    cuts = not inside or offsets[first][0] < span.start or span.end < offsets[last - 1][1]
    if cuts:
        if misaligned == "error":
            raise TagError(
                f"the span {span.start}-{span.end} {span.type} must start and end where tokens do; "
                'misaligned="expand" or "drop" (--read misaligned=drop) accepts it',
                text=text[span.start : span.end],
            )
        counts["misaligned"] += 1
        if misaligned == "drop" or not inside:
            return None
    return Span(first, last, span.type)


@lru_cache(maxsize=1 << 14)
def _kind(char: str) -> str:
    """Return the kind of a character.

    ' ' space, 'w' letter, '0' digit, 'c' unspaced script, 'f' half of a flag, '.' anything else,
    and '+' for what combines with the character before it.
    """
    category = unicodedata.category(char)
    if category[0] == "Z" or char in "\t\n\r\v\f\x1c\x1d\x1e\x1f\x85":
        return " "
    code = ord(char)
    if (
        category[0] == "M"
        or char == _ZWJ
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
    ):
        return "+"
    if any(a <= code <= b for a, b in _UNSPACED):
        return "c"
    if category[0] == "L" or category == "Pc":
        return "w"
    if category[0] == "N":
        return "0"
    return "f" if 0x1F1E6 <= code <= 0x1F1FF else "."


def _joins(text: str, start: int, at: int, before: str, kind: str) -> bool:
    """Whether the character at `at` belongs to the token that starts at `start`."""
    if at and text[at - 1] == _ZWJ and before != " ":
        return kind != " "
    if kind in "w0":
        if before in "w0":
            return True
        # 4.50 and 1,000 stay whole, and so does a clitic with its apostrophe: 's, 't, 're.
        mark = text[at - 1] if at else ""
        if before == "." and kind == "0" and mark in ".,:" and start < at - 1:
            return True
        return (
            before == "."
            and kind == "w"
            and mark in "'\u2019"
            and at - start == 1
            and _clitic(text, at)
        )
    if kind == ".":
        nxt = text[at + 1 : at + 2]
        return before == "0" and text[at] in ".," and nxt.isdigit()
    return kind == "f" and before == "f" and at - start == 1


def _clitic(text: str, at: int) -> bool:
    """Whether one or two letters, and no more, follow an apostrophe behind a letter."""
    end = at
    while end < len(text) and text[end].isalpha() and end - at < 3:
        end += 1
    return 1 <= end - at <= 2 and at >= 2 and text[at - 2].isalpha()
