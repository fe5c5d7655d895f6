"""doccano's JSON lines: {"id": 1, "text": …, "label": [[0, 4, "PER"], …]}.

"labels" is read like "label", and so are the "entities" of relation projects.
doccano exports an empty list both for a text without spans and for one that nobody has seen.
It is read as labeled, so export approved examples only.
If our tokenizer would cut a text differently, "tokens" keeps the cut as [start, end] pairs, which
doccano keeps as metadata.
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
    offsets_of,
    surface,
    text_of,
    to_spans,
    unusual_offsets,
)
from seqmix.data.formats.records import identify, json_lines, write_lines
from seqmix.data.sentence import Sentence
from seqmix.data.text import CharSpan
from seqmix.errors import DataError

_KEYS = ("label", "labels", "entities")


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per line; one without an id is `stem:line`."""
    for line, record, text in json_lines(path):
        with at(path, line, text):
            raw = text_of(record)
            offsets, id = offsets_of(record, raw), identify(record, path, line)
            yield from_spans(id, raw, _spans(record), options, offsets)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write one object per line."""
    write_lines((_record(sentence, options) for sentence in sentences), path)


def _spans(record: dict[str, Any]) -> list[CharSpan] | None:
    key = next((key for key in _KEYS if record.get(key) is not None), None)
    if key is None:
        return None
    return [_entity(item) if key == "entities" else _triple(item) for item in list_of(record, key)]


def _triple(item: Any) -> CharSpan:
    if not isinstance(item, list) or len(item) != 3:
        raise DataError('expected a label to be a list [start, end, "LABEL"]', text=str(item))
    return char_span(*item)


def _entity(item: Any) -> CharSpan:
    if not isinstance(item, dict):
        raise DataError(
            'expected an entity to be an object with "start_offset", "end_offset" and "label"',
            text=str(item),
        )
    return char_span(item.get("start_offset"), item.get("end_offset"), item.get("label"))


def _record(sentence: Sentence, options: Options) -> dict[str, Any]:
    text, offsets = surface(sentence, options)
    record: dict[str, Any] = {"id": sentence.id, "text": text}
    if sentence.labeled:
        record["label"] = [[s.start, s.end, s.type] for s in to_spans(sentence, offsets)]
    return record | unusual_offsets(text, offsets)


def _is_record(record: dict[str, Any]) -> bool:
    return isinstance(record.get("text"), str) and any(
        isinstance(record.get(key), list) for key in _KEYS
    )


FORMAT = Format(
    "doccano", read, write, record=_is_record, holds=frozenset({"tokens", "id", "text"})
)
