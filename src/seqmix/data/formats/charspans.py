"""What the formats with raw text and character spans share: sentences from spans, spans from sentences."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from seqmix.data.formats.base import Options, at, visible
from seqmix.data.scheme import prefixed, spans, tag
from seqmix.data.sentence import Offsets, Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.data.text import CharSpan, align_one, tags_from_text, tokenize, without_overlaps
from seqmix.errors import DataError, TagError

_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")
_LONGEST = 12  # characters of a text that one character of what a file shows of it may stand for: &quot; is one, line ends are spaces


def from_spans(
    id: str,
    text: str,
    found: Iterable[CharSpan] | None,
    options: Options,
    offsets: Offsets | None = None,
) -> Sentence:
    """A sentence from text and spans: no spans mean all O, None means unlabeled. Without offsets our tokenizer cuts the text."""
    cut = tokenize(text) if offsets is None else offsets
    tags = (
        ()
        if found is None
        else tags_from_text(cut, found, options.misaligned, options.counts, text)
    )
    return Sentence(id, visible((text[a:b] for a, b in cut), options), tuple(tags), text, cut)


def from_placed(
    id: str, text: str, found: Sequence[tuple[int, CharSpan]] | None, options: Options, path: Path
) -> Sentence:
    """As `from_spans`, for spans that each have a line of their own in a file: errors name it."""
    offsets = tokenize(text)
    aligned = []
    for line, span in found or ():
        with at(path, line):
            aligned.append(align_one(offsets, span, options.misaligned, options.counts, text))
    with at(path):  # two lines are to blame, so none is named
        kept = without_overlaps(
            offsets, (s for s in aligned if s is not None), options.misaligned, options.counts, text
        )
    return Sentence(
        id,
        tuple(text[a:b] for a, b in offsets),
        () if found is None else tuple(tag(kept, len(offsets))),
        text,
        offsets,
    )


def to_spans(sentence: Sentence, offsets: Offsets) -> list[CharSpan]:
    """The spans of a sentence in characters; missing rows count as O."""
    tags = [OUTSIDE if row is None else str(row) for row in sentence.tags]
    return [CharSpan(offsets[s.start][0], offsets[s.end - 1][1], s.type) for s in spans(tags)]


def surface(sentence: Sentence, options: Options) -> tuple[str, Offsets]:
    """Text and offsets that give the tokens back; where the raw text does not (tokens were rewritten), the tokens joined by spaces."""
    text, offsets = sentence.located()
    if all(
        a < b and text[a:b] == token for (a, b), token in zip(offsets, sentence.tokens, strict=True)
    ):
        return text, offsets
    options.counts["raw text left out"] += 1
    return Sentence(sentence.id, sentence.tokens).located()


def one_line(text: str, options: Options) -> str:
    """The text with its line ends as spaces, so that every offset stays true."""
    flat = text.replace("\n", " ").replace("\r", " ")
    if flat != text:
        options.counts["line end in a text"] += 1
    return flat


def is_spans(sentence: Sentence) -> bool:
    """Whether spans can say all that the tags say: every row hard (or none at all) and no tag without a prefix, as NOUN is."""
    return not sentence.labeled or (
        sentence.hard and all(row == OUTSIDE or prefixed(str(row)) for row in sentence.tags)
    )


def without_space_tokens(sentence: Sentence, format: str) -> Sentence:
    """The sentence, once it is certain that no token is white space: spaCy makes such tokens of stray spaces, and readers drop them."""
    for token in sentence.tokens:
        if token.isspace():
            raise DataError(
                f"sentence {sentence.id!r}: a token of nothing but white space has no place in the format {format}",
                text=token,
            )
    return sentence


def text_of(record: dict[str, Any], key: str = "text") -> str:
    """The raw text of a record."""
    text = record.get(key)
    if not isinstance(text, str):
        raise DataError(f'expected "{key}" to be a string')
    return text


def list_of(record: dict[str, Any], key: str) -> list[Any]:
    """The list at a key."""
    found = record.get(key)
    if not isinstance(found, list):
        raise DataError(f'expected "{key}" to be a list', text=str(found))
    return found


def char_span(start: Any, end: Any, label: Any) -> CharSpan:
    """A span from outside, once it is certain that it has two whole numbers and a label."""
    if type(start) is not int or type(end) is not int:
        raise DataError(
            "expected a span to start and end at whole numbers", text=f"{start!r}, {end!r}"
        )
    if not isinstance(label, str) or not label:
        raise TagError("expected the label of a span to be a string, not empty", text=repr(label))
    return CharSpan(start, end, label)


def confirmed(
    span: CharSpan, shown: Any, text: str, options: Options, read: Callable[[str], str] = str
) -> CharSpan | None:
    """The span, once the text it claims to cover stands there (as `read` reads it).

    Offsets that count UTF-16 units, as browsers do, are mended and counted; other disagreement follows `Options.misaligned`.
    """
    if not isinstance(shown, str) or span.start < 0:
        return span
    length = min(span.end, len(text)) - span.start
    comparable = length <= _LONGEST * (
        len(shown) + 1
    )  # subtle: else a short line that claims a whole text copies it
    if comparable and _same(read(text[span.start : span.end]), shown):
        return span
    start, end = (_from_units(text, place) for place in (span.start, span.end))
    if (
        comparable
        and start is not None
        and end is not None
        and start < end
        and _same(text[start:end], shown)
    ):
        options.counts["UTF-16 offsets"] += 1
        return CharSpan(start, end, span.type)
    if options.misaligned == "error":
        place = f"{span.start}-{span.end}"
        raise TagError(
            f"expected {shown!r} at {place}; --read misaligned=expand or drop takes it",
            text=text[span.start : span.end],
        )
    options.counts["misaligned"] += 1
    return span if options.misaligned == "expand" else None


def _from_units(text: str, place: int) -> int | None:
    """The character at a place that counts UTF-16 units, the end of the text where it lies behind; None inside a pair of units."""
    pairs = _pairs(text)
    before = bisect_left(pairs, place)  # characters of two units that begin before it
    if before and pairs[before - 1] == place - 1:
        return None
    return min(place - before, len(text))


@lru_cache(maxsize=2)  # all spans of a text come one after another
def _pairs(text: str) -> list[int]:
    """Where the characters of two UTF-16 units begin, counted in units."""
    return [match.start() + number for number, match in enumerate(_TWO_UNITS.finditer(text))]


def _same(a: str, b: str) -> bool:
    """Equal but for how a line end inside is written."""
    return a == b or a.split() == b.replace("\\n", " ").split()
