"""Prodigy's JSON lines.

    {"text": …, "tokens": [{"text": …, "start": 0, "end": 4, "id": 0, "ws": true}],
     "spans": […], "answer": "accept"}

Answers other than accept are skipped and counted: a rejected span says nothing certain.
A task without spans and answer is unlabeled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seqmix.data.formats.base import Format, Options, at
from seqmix.data.formats.charspans import (
    char_span,
    from_spans,
    list_of,
    span_of,
    surface,
    text_of,
    to_spans,
    without_space_tokens,
)
from seqmix.data.formats.records import identify, json_lines, write_lines
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Offsets, spans
from seqmix.data.text import CharSpan, checked_offsets
from seqmix.errors import DataError

ACCEPT = "accept"


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per line; one without an id is `stem:line`."""
    for line, record, text in json_lines(path):
        with at(path, line, text):
            if record.get("answer", ACCEPT) != ACCEPT:
                options.counts["not accepted"] += 1
                continue
            yield _sentence(record, identify(record, path, line), options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write one object per line."""
    write_lines(
        (_record(without_space_tokens(sentence, "prodigy"), options) for sentence in sentences),
        path,
    )


def _sentence(record: dict[str, Any], id: str, options: Options) -> Sentence:
    text = text_of(record)
    tokens = None if record.get("tokens") is None else _offsets(record, text)
    labels = None
    if record.get("spans") is not None:
        labels = [_span(item, tokens) for item in list_of(record, "spans")]
    elif "answer" in record:
        labels = []  # accepted without any span
    # spaCy makes tokens of stray white space; we do not.
    offsets = tokens and tuple((a, b) for a, b in tokens if not text[a:b].isspace())
    return from_spans(id, text, labels, options, offsets)


def _offsets(record: dict[str, Any], text: str) -> Offsets:
    tokens = list_of(record, "tokens")
    if not all(isinstance(token, dict) for token in tokens):
        raise DataError('expected "tokens" to be objects with "start" and "end"')
    pairs = [[token.get("start"), token.get("end")] for token in tokens]
    return checked_offsets(pairs, text, '"tokens"')


def _span(item: Any, tokens: Offsets | None) -> CharSpan:
    """Return a span by its characters, or else by its first and last token."""
    if not isinstance(item, dict) or "start" in item or tokens is None:
        return span_of(item)
    first, last = item.get("token_start"), item.get("token_end")
    if type(first) is not int or type(last) is not int or not 0 <= first <= last < len(tokens):
        raise DataError(
            f"expected a span to start and end in the {len(tokens)} tokens of its text",
            text=str(item),
        )
    return char_span(tokens[first][0], tokens[last][1], item.get("label"))  # token_end is inclusive


def _record(sentence: Sentence, options: Options) -> dict[str, Any]:
    text, offsets = surface(sentence, options)
    words = [
        {"text": text[a:b], "start": a, "end": b, "id": i, "ws": text[b : b + 1] == " "}
        for i, (a, b) in enumerate(offsets)
    ]
    record: dict[str, Any] = {"id": sentence.id, "text": text, "tokens": words}
    if sentence.labeled:
        places = spans([str(tag) for tag in sentence.tags])
        record["spans"] = [
            {
                "start": chars.start,
                "end": chars.end,
                "token_start": tokens.start,
                "token_end": tokens.end - 1,
                "label": chars.type,
            }
            for chars, tokens in zip(to_spans(sentence, offsets), places, strict=True)
        ]
        record["answer"] = ACCEPT
    return record


def _is_record(record: dict[str, Any]) -> bool:
    tokens = record.get("tokens") or ()
    return isinstance(record.get("text"), str) and (
        "answer" in record or any(isinstance(token, dict) for token in tokens)
    )


FORMAT = Format(
    "prodigy", read, write, record=_is_record, holds=frozenset({"tokens", "id", "text"})
)
