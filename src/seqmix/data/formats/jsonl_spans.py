"""JSON lines of raw text and character spans.

    {"id": …, "text": …, "spans": [{"start": 0, "end": 4, "label": "PER"}]}

"tokens" are the tokens as [start, end] pairs; without them our tokenizer cuts the text.
Empty "spans" mean that nothing in the text is a span, no "spans" that the text is unlabeled.
Rows that spans cannot express (soft, missing, NOUN) are in "tags", as in jsonl-tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seqmix.data.formats.base import Format, Options, at
from seqmix.data.formats.charspans import (
    from_spans,
    is_spans,
    list_of,
    offsets_of,
    span_of,
    span_records,
    surface,
    text_of,
)
from seqmix.data.formats.jsonl_tokens import plain_rows, rows_of
from seqmix.data.formats.records import identify, json_lines, write_lines
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

_DOCCANO = ("label", "labels", "entities")


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per line; one without an id is `stem:line`."""
    for line, record, text in json_lines(path):
        with at(path, line, text):
            yield _sentence(record, identify(record, path, line), options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write one object per line."""
    write_lines((_record(sentence, options) for sentence in sentences), path)


def _sentence(record: dict[str, Any], id: str, options: Options) -> Sentence:
    text = text_of(record)
    offsets = offsets_of(record, text)
    if record.get("tags") is not None:
        return from_spans(id, text, None, options, offsets).with_tags(rows_of(record, "tags"))
    if record.get("spans") is None:
        if any(isinstance(record.get(key), list) for key in _DOCCANO):
            raise DataError(
                'expected "spans"; the format doccano reads records with "label" or "entities"'
            )
        return from_spans(id, text, None, options, offsets)
    spans = [span_of(span) for span in list_of(record, "spans")]
    return from_spans(id, text, spans, options, offsets)


def _record(sentence: Sentence, options: Options) -> dict[str, Any]:
    text, offsets = surface(sentence, options)
    record: dict[str, Any] = {
        "id": sentence.id,
        "text": text,
        "tokens": [list(pair) for pair in offsets],
    }
    if not is_spans(sentence):
        record["tags"] = plain_rows(sentence)
    elif sentence.labeled:
        record["spans"] = span_records(sentence, offsets)
    return record


def _is_record(record: dict[str, Any]) -> bool:
    return isinstance(record.get("text"), str) and not any(
        isinstance(token, str) for token in record.get("tokens") or ()
    )


FORMAT = Format(
    "jsonl-spans",
    read,
    write,
    record=_is_record,
    holds=frozenset({"tokens", "tags", "soft", "missing", "id", "text"}),
)
