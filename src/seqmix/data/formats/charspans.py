"""What formats with raw text and character spans share."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from seqmix.data.formats.base import Options, at, visible
from seqmix.data.scheme import tag
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, Offsets, prefixed, spans
from seqmix.data.text import (
    CharSpan,
    align_one,
    checked_offsets,
    tags_from_text,
    tokenize,
    without_overlaps,
)
from seqmix.data.tokenizers import token_offsets
from seqmix.errors import DataError, TagError

Placed = tuple[int, CharSpan]  # a span, and its line in a file
_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")
_LONGEST = 12  # characters of a text for each character a file shows of it: &quot; is shown as one


def from_spans(
    id: str,
    text: str,
    labels: Iterable[CharSpan] | None,
    options: Options,
    offsets: Offsets | None = None,
) -> Sentence:
    """Return a sentence with these labels: an empty list means all O, None means unlabeled.

    Without offsets the tokenizer of the options cuts the text.
    """
    offsets = token_offsets(text, options.tokenizer) if offsets is None else offsets
    tags: list[str] = []
    if labels is not None:
        tags = tags_from_text(offsets, labels, options.misaligned, options.counts, text)
    words = visible((text[a:b] for a, b in offsets), options)
    return Sentence(id, words, tuple(tags), text, offsets)


def from_placed(
    id: str, text: str, labels: Sequence[Placed] | None, options: Options, path: Path
) -> Sentence:
    """Return a sentence as `from_spans` does, with errors that name the line of a span."""
    offsets = token_offsets(text, options.tokenizer)
    aligned = []
    for line, span in labels or ():
        with at(path, line):
            aligned.append(align_one(offsets, span, options.misaligned, options.counts, text))
    with at(path):  # an overlap has two lines, so none is named
        kept = without_overlaps(
            offsets, (s for s in aligned if s is not None), options.misaligned, options.counts, text
        )
    tags = () if labels is None else tuple(tag(kept, len(offsets)))
    return Sentence(id, tuple(text[a:b] for a, b in offsets), tags, text, offsets)


def to_spans(sentence: Sentence, offsets: Offsets) -> list[CharSpan]:
    """Return the spans of a sentence in characters; missing rows count as O."""
    tags = [OUTSIDE if row is None else str(row) for row in sentence.tags]
    return [CharSpan(offsets[s.start][0], offsets[s.end - 1][1], s.type) for s in spans(tags)]


def span_records(sentence: Sentence, offsets: Offsets) -> list[dict[str, Any]]:
    """Return the spans of a sentence as objects with start, end and label."""
    return [
        {"start": span.start, "end": span.end, "label": span.type}
        for span in to_spans(sentence, offsets)
    ]


def surface(sentence: Sentence, options: Options) -> tuple[str, Offsets]:
    """Return text and offsets of the tokens; tokens that were rewritten are joined by spaces."""
    text, offsets = sentence.located()
    pairs = zip(offsets, sentence.tokens, strict=True)
    if all(a < b and text[a:b] == token for (a, b), token in pairs):
        return text, offsets
    options.counts["raw text left out"] += 1
    return Sentence(sentence.id, sentence.tokens).located()


def one_line(text: str, options: Options) -> str:
    """Return the text with line ends as spaces, so that every offset stays valid."""
    flat = text.replace("\n", " ").replace("\r", " ")
    if flat != text:
        options.counts["line end in a text"] += 1
    return flat


def is_spans(sentence: Sentence) -> bool:
    """Whether spans can express the tags: all rows hard, and no tag without a prefix, like NOUN."""
    return not sentence.labeled or (
        sentence.hard and all(row == OUTSIDE or prefixed(str(row)) for row in sentence.tags)
    )


def without_space_tokens(sentence: Sentence, format: str) -> Sentence:
    """Return the sentence; white space as a token is an error, since readers drop it."""
    for token in sentence.tokens:
        if token.isspace():
            raise DataError(
                f"sentence {sentence.id!r}: "
                f"the format {format} cannot hold a token that is only white space",
                text=token,
            )
    return sentence


def text_of(record: dict[str, Any], key: str = "text") -> str:
    """Return the raw text of a record."""
    text = record.get(key)
    if not isinstance(text, str):
        raise DataError(f'expected "{key}" to be a string')
    return text


def list_of(record: dict[str, Any], key: str) -> list[Any]:
    """Return the list at a key."""
    value = record.get(key)
    if not isinstance(value, list):
        raise DataError(f'expected "{key}" to be a list', text=str(value))
    return value


def offsets_of(record: dict[str, Any], text: str) -> Offsets | None:
    """Return the [start, end] pairs at "tokens", or None if there are none."""
    if record.get("tokens") is None:
        return None
    return checked_offsets(record["tokens"], text, '"tokens"')


def unusual_offsets(text: str, offsets: Offsets) -> dict[str, Any]:
    """Return the entry "tokens" for a record, empty if our tokenizer cuts the text the same way."""
    return {} if tokenize(text) == offsets else {"tokens": [list(pair) for pair in offsets]}


def span_of(item: Any) -> CharSpan:
    """Return the span of an object with start, end and label."""
    if not isinstance(item, dict):
        raise DataError(
            'expected a span to be an object with "start", "end" and "label"', text=str(item)
        )
    return char_span(item.get("start"), item.get("end"), item.get("label"))


def char_span(start: Any, end: Any, label: Any) -> CharSpan:
    """Return a span of untrusted values, which must be two integers and a label."""
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
    """Return the span if it covers the text that the file shows for it (as `read` reads it).

    Offsets in UTF-16 units, as browsers count, are converted and counted.
    Any other disagreement follows `Options.misaligned`.
    """
    if not isinstance(shown, str) or span.start < 0:
        return span
    length = min(span.end, len(text)) - span.start
    comparable = length <= _LONGEST * (len(shown) + 1)  # a short line may claim a whole long text
    if comparable and _same(read(text[span.start : span.end]), shown):
        return span
    start, end = (_from_units(text, place) for place in (span.start, span.end))
    ordered = start is not None and end is not None and start < end
    if comparable and ordered and _same(text[start:end], shown):
        options.counts["UTF-16 offsets"] += 1
        return CharSpan(start or 0, end or 0, span.type)
    if options.misaligned == "error":
        place = f"{span.start}-{span.end}"
        raise TagError(
            f"expected {shown!r} at {place}; --read misaligned=expand or drop accepts it",
            text=text[span.start : span.end],
        )
    options.counts["misaligned"] += 1
    return span if options.misaligned == "expand" else None


def _from_units(text: str, place: int) -> int | None:
    """Return the character at a place counted in UTF-16 units, or None inside a pair of units."""
    pairs = _pairs(text)
    before = bisect_left(pairs, place)  # characters of two units that start before it
    if before and pairs[before - 1] == place - 1:
        return None
    return min(place - before, len(text))


@lru_cache(maxsize=2)  # the spans of a text come one after another
def _pairs(text: str) -> list[int]:
    """Return where the characters of two UTF-16 units start, counted in units."""
    return [match.start() + number for number, match in enumerate(_TWO_UNITS.finditer(text))]


def _same(a: str, b: str) -> bool:
    """Whether two texts are equal but for how line ends are written."""
    return a == b or a.split() == b.replace("\\n", " ").split()
