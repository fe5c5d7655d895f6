"""JSON lines of tokens and tags: {"id": …, "tokens": […], "ner_tags": […]}.

A tag is a string, null (a missing row) or an object of weights (a soft row), so that this format
holds everything; "text" and "offsets" are added for sentences that were cut from raw text, and
"weight" for those that count less than others in training.
"tags" and "pos_tags" are read like "ner_tags".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqmix.data.formats.base import Format, Options, at, visible
from seqmix.data.formats.records import identify, json_lines, write_lines
from seqmix.data.sentence import Row, Sentence
from seqmix.data.text import checked_offsets
from seqmix.errors import DataError, TagError

TAG_KEYS = ("ner_tags", "tags", "pos_tags")


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per line; one without an id is `stem:line`."""
    for line, record, text in json_lines(path):
        with at(path, line, text):
            sentence = from_record(record, identify(record, path, line))
            tokens = visible(sentence.tokens, options)
            yield sentence if tokens is sentence.tokens else replace(sentence, tokens=tokens)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write one object per line."""
    write_lines((to_record(sentence) for sentence in sentences), path)


def from_record(record: dict[str, Any], id: str) -> Sentence:
    """Return the sentence of a JSON object."""
    tokens = record.get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise DataError('expected "tokens" to be a list of strings')
    rows = next((rows_of(record, key) for key in TAG_KEYS if record.get(key) is not None), ())
    text, offsets, weight = record.get("text"), record.get("offsets"), record.get("weight", 1.0)
    if text is None or offsets is None:
        return Sentence(id, tuple(tokens), rows, weight=weight)
    if not isinstance(text, str):
        raise DataError('expected "text" to be a string')
    located = checked_offsets(offsets, text, '"offsets"')
    return Sentence(id, tuple(tokens), rows, text, located, weight)


def to_record(sentence: Sentence) -> dict[str, Any]:
    """Return a sentence as a JSON object."""
    record: dict[str, Any] = {"id": sentence.id, "tokens": list(sentence.tokens)}
    if sentence.labeled:
        record["ner_tags"] = plain_rows(sentence)
    if sentence.offsets is not None:
        record |= {"text": sentence.text, "offsets": [list(pair) for pair in sentence.offsets]}
    if sentence.weight != 1:
        record["weight"] = sentence.weight
    return record


def plain_rows(sentence: Sentence) -> list[Any]:
    """Return tag rows as JSON values."""
    return [row if row is None or isinstance(row, str) else dict(row) for row in sentence.tags]


def rows_of(record: dict[str, Any], key: str) -> tuple[Row, ...]:
    """Return the tag rows in a record: the inverse of `plain_rows`."""
    rows = record[key]
    if not isinstance(rows, list):
        raise DataError(f'expected "{key}" to be a list, one entry per token')
    for row in rows:
        soft = isinstance(row, dict) and all(isinstance(w, int | float) for w in row.values())
        if not (row is None or isinstance(row, str) or soft):
            hint = "; integer tags need their names: read the Hugging Face dataset instead"
            hint = hint if isinstance(row, int) else ""
            raise DataError(
                f"expected a tag to be a string, null or an object of weights{hint}",
                text=json.dumps(row),
            )
        if row == "" or (soft and "" in row):
            raise TagError("expected a tag, found an empty string", text=json.dumps(row))
    return tuple(rows)


FORMAT = Format(
    "jsonl-tokens",
    read,
    write,
    suffixes=(".jsonl",),
    record=lambda r: (
        isinstance(r.get("tokens"), list) and all(isinstance(token, str) for token in r["tokens"])
    ),
    holds=frozenset({"tokens", "tags", "soft", "missing", "id", "text"}),
)
