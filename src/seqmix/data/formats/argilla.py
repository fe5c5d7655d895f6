"""Argilla 2: what `dataset.records.to_json` writes (an array of records), or one record per line.

    {"id": …, "fields": {"text": …}, "responses":
     {"span_label": [{"value": [{"start": 0, "end": 4, "label": "PER"}], "user_id": …}]}}

The last response to the span question that is not a draft or discarded counts; an empty one means
that nothing in the text is a span.
A suggestion is a label only if a person made it ("type": "human").
`to_json` omits the status of a response; the flattened records of `to_list(flatten=True)` and
`to_datasets`, which have it, are read too.
Argilla accepts no response without the id of one of its users, so labels are written as suggestions
of a person, which `dataset.records.from_json` imports for anyone to confirm.
If our tokenizer would cut a text differently, "tokens" keeps the cut as [start, end] pairs, which
Argilla ignores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from seqmix.data.formats.base import Format, Options, at
from seqmix.data.formats.charspans import (
    from_spans,
    list_of,
    offsets_of,
    span_of,
    span_records,
    surface,
    unusual_offsets,
)
from seqmix.data.formats.records import identify, json_records, write_records
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Offsets
from seqmix.data.text import CharSpan, align
from seqmix.data.tokenizers import token_offsets
from seqmix.errors import DataError, TagError

QUESTION = "span_label"  # the name in Argilla's own examples; any other is read
_UNANSWERED = ("draft", "discarded")
_RESPONSES, _SUGGESTION = ".responses", ".suggestion"


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per record; one without an id is `stem:line`."""
    for line, record, text in json_records(path):
        with at(path, line, text):
            yield _sentence(record, identify(record, path, line), options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write an array of records, or one record per line if the name ends in .jsonl."""
    write_records((_record(sentence, options) for sentence in sentences), path)


def _sentence(record: dict[str, Any], id: str, options: Options) -> Sentence:
    text = _text(record)
    offsets = offsets_of(record, text)
    labels = _answer(record)
    if labels:
        labels = _in_characters(
            labels, text, offsets or token_offsets(text, options.tokenizer), options
        )
    return from_spans(id, text, labels, options, offsets)


def _text(record: dict[str, Any]) -> str:
    """Return the field "text", or the only field that is a string.

    In a flattened record the fields are beside everything else.
    """
    fields = record.get("fields")
    if not isinstance(fields, dict):
        if "fields" in record or not isinstance(record.get("text"), str):
            raise DataError('expected a record with "fields", one of them "text"')
        return str(record["text"])
    if isinstance(fields.get("text"), str):
        return str(fields["text"])
    strings = [value for value in fields.values() if isinstance(value, str)]
    if len(strings) != 1:
        raise DataError(
            'expected "fields" to have "text", or a single field that is a string',
            text=str(list(fields)),
        )
    return strings[0]


def _answer(record: dict[str, Any]) -> list[CharSpan] | None:
    """Return the spans that a person marked, or None if nobody has answered."""
    responses = [
        value
        for value, status in _responses(record)
        if status not in _UNANSWERED and _is_spans(value)
    ]
    suggested = [
        suggestion.get("value")
        for suggestion in _suggestions(record)
        if suggestion.get("type") == "human"
    ]
    answers = responses or [value for value in suggested if _is_spans(value)]
    return [span_of(span) for span in answers[-1]] if answers else None


def _is_spans(value: Any) -> bool:
    """Whether this answers a span question, rather than one for text, numbers, labels or ranks."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return False
    if not all({"start", "end", "label"} & set(item) for item in value):
        return False
    if not all({"start", "end", "label"} <= set(item) for item in value):
        raise DataError(
            'expected a span to be an object with "start", "end" and "label"', text=str(value)
        )
    return True


def _responses(record: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield value and status of each response; the status is None if the file has none."""
    nested = record.get("responses")
    if nested is not None:
        if not isinstance(nested, dict):
            raise DataError(
                'expected "responses" to be an object: a list of responses for each question',
                text=str(nested),
            )
        for question in nested:
            for response in list_of(nested, question):
                if not isinstance(response, dict):
                    raise DataError(
                        'expected a response to be an object with a "value"', text=str(response)
                    )
                yield response.get("value"), response.get("status")
    for key, values in record.items():
        if key.endswith(_RESPONSES) and values is not None:
            n, status = len(list_of(record, key)), record.get(f"{key}.status")
            status = [None] * n if status is None else status
            if not isinstance(status, list) or len(status) != n:
                raise DataError(
                    f'expected "{key}.status" to be a list, one per response', text=str(status)
                )
            yield from zip(values, status, strict=True)


def _suggestions(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    nested = record.get("suggestions")
    if nested is None:
        return
    if not isinstance(nested, dict) or not all(
        isinstance(value, dict) for value in nested.values()
    ):
        raise DataError(
            'expected "suggestions" to be an object: one with a "value" for each question',
            text=str(nested),
        )
    yield from nested.values()


def _in_characters(
    labels: list[CharSpan], text: str, offsets: Offsets, options: Options
) -> list[CharSpan]:
    """Return the spans counted in characters; Argilla's page counts UTF-16 units (its issue 5729).

    A record does not say which it is. Spans are read as UTF-16 only if one of them cuts a
    token when read as characters, and none does when read as UTF-16.
    """
    if text.isascii() or _fits(labels, offsets, text):
        return labels
    units = accumulate((2 if ord(c) > 0xFFFF else 1 for c in text), initial=0)
    places = {unit: number for number, unit in enumerate(units)}
    if not all(span.start in places and span.end in places for span in labels):
        return labels
    moved = [replace(span, start=places[span.start], end=places[span.end]) for span in labels]
    if not _fits(moved, offsets, text):
        return labels
    options.counts["UTF-16 offsets"] += len(labels)
    return moved


def _fits(labels: list[CharSpan], offsets: Offsets, text: str) -> bool:
    try:
        align(offsets, labels, "error", Counter(), text)
    except TagError:
        return False
    return True


def _record(sentence: Sentence, options: Options) -> dict[str, Any]:
    text, offsets = surface(sentence, options)
    record: dict[str, Any] = {
        "id": sentence.id,
        "fields": {"text": text},
        "metadata": {},
        "suggestions": {},
        "responses": {},
        "vectors": {},
    }
    if sentence.labeled:
        record["suggestions"][QUESTION] = {
            "value": span_records(sentence, offsets),
            "score": None,
            "agent": "seqmix",
            "type": "human",
        }
    return record | unusual_offsets(text, offsets)


def _is_record(record: dict[str, Any]) -> bool:
    nested = isinstance(record.get("fields"), dict) and (
        "responses" in record or "suggestions" in record
    )
    return nested or any(key.endswith((_RESPONSES, _SUGGESTION)) for key in record)


FORMAT = Format(
    "argilla", read, write, record=_is_record, holds=frozenset({"tokens", "id", "text"})
)
