"""Sentences as pandas tables, with one row per sentence or one row per token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from seqmix.data.formats.jsonl_tokens import TAG_KEYS, from_record, plain_rows, to_record
from seqmix.data.sentence import Row, Sentence
from seqmix.data.text import checked_offsets
from seqmix.errors import DataError, TagError
from seqmix.extras import import_extra

_PER_SENTENCE = ("id", "tokens", "ner_tags", "text", "offsets")
_TOKEN = ("token", "word")  # names of columns, whatever their case
_SENTENCE = ("sentence_id", "sentence", "sentence #", "sentence_number", "id")
_TAG = ("tag", "ner_tag", "ner", "label", "pos_tag")


def sentences_of_frame(frame: Any) -> Iterator[Sentence]:
    """Return the sentences of a table; the columns say which rows it has."""
    names = {str(column).lower(): column for column in frame.columns}
    if "tokens" in names:
        return _from_sentences(frame)
    token, sentence = (
        next((names[n] for n in known if n in names), None) for known in (_TOKEN, _SENTENCE)
    )
    if token is not None and sentence is not None:
        tag = next((names[n] for n in _TAG if n in names), None)
        return _from_tokens(frame, sentence, token, tag)
    if "text" in names:
        return _from_texts(frame, names["text"])
    listed = ", ".join(map(repr, frame.columns)) or "none"
    raise DataError(
        "expected the columns tokens and ner_tags (one row per sentence), sentence_id, token and "
        f"tag (one row per token), or text; the columns are {listed}; "
        "frame.rename(columns={…}) names them so"
    )


def frame_of(sentences: Iterable[Sentence], by_token: bool) -> Any:
    """Return sentences as a table: the inverse of `sentences_of_frame`."""
    pandas = import_extra("pandas", "hf", "a pandas table")
    if not by_token:
        records = [to_record(sentence) for sentence in sentences]
        return pandas.DataFrame(
            {
                name: pandas.Series([record.get(name) for record in records], dtype=object)
                for name in _PER_SENTENCE
            }
        )
    rows = [row for sentence in sentences for row in _token_rows(sentence)]
    names = ("sentence_id", "token", "tag", "start", "end", "text")
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(names)
    return pandas.DataFrame(
        {
            name: pandas.Series(column, dtype="Int64" if name in ("start", "end") else object)
            for name, column in zip(names, columns, strict=True)
        }
    )


def _token_rows(sentence: Sentence) -> Iterator[tuple[Any, ...]]:
    if not len(sentence):
        raise DataError(
            f"sentence {sentence.id!r} has no token, which one row per token cannot express"
        )
    places = sentence.offsets or [(None, None)] * len(sentence)
    for token, tag, place in zip(sentence.tokens, plain_rows(sentence), places, strict=True):
        yield (sentence.id, token, tag, *place, sentence.text)


def _from_sentences(frame: Any) -> Iterator[Sentence]:
    columns = [c for c in (*_PER_SENTENCE, *TAG_KEYS) if c in frame.columns]
    columns = list(dict.fromkeys(columns))
    if "tokens" not in columns:
        raise DataError(f"the column must be named 'tokens'; there are {list(frame.columns)}")
    for number, values in enumerate(zip(*(frame[c] for c in columns), strict=True), 1):
        record = {
            column: _listed(value)
            for column, value in zip(columns, values, strict=True)
            if not _missing(value)
        }
        id = str(record.pop("id", f"row:{number}"))
        try:
            yield from_record(record, id)
        except DataError as error:
            raise type(error)(f"row {number}: {error.expected}", text=error.text) from error


def _from_tokens(frame: Any, sentence: Any, token: Any, tag: Any) -> Iterator[Sentence]:
    """Yield the sentences of rows in order; a row without an id belongs to the one before it."""
    extra = [c for c in ("start", "end", "text") if c in frame.columns]
    columns = [sentence, token, *([] if tag is None else [tag]), *extra]
    placed, seen = len(extra) == 3, set[str]()
    ids: list[Any] = []
    for number, value in enumerate(frame[sentence], 1):
        if _missing(value) and not ids:
            raise DataError(f"row {number} must say which sentence it is of", text=str(sentence))
        ids.append(ids[-1] if _missing(value) else value)
    rows = zip(ids, *(frame[c] for c in columns[1:]), strict=True)
    for id, group in groupby(rows, key=lambda row: row[0]):
        if str(id) in seen:
            raise DataError("the rows of a sentence must be together", text=str(id))
        seen.add(str(id))
        members = list(group)
        tokens = _tokens([row[1] for row in members], token)
        tags = () if tag is None else _rows([row[2] for row in members], tag)
        if placed and not _missing(text := members[0][-1]):
            offsets = checked_offsets([[int(row[-3]), int(row[-2])] for row in members], text)
            yield Sentence(str(id), tokens, tags, text, offsets)
        else:
            yield Sentence(str(id), tokens, tags)


def _from_texts(frame: Any, column: Any) -> Iterator[Sentence]:
    ids = frame["id"] if "id" in frame.columns else [f"row:{n + 1}" for n in range(len(frame))]
    for id, text in zip(ids, frame[column], strict=True):
        if not _missing(text):
            yield Sentence.from_text(text, str(id))


def _tokens(values: Sequence[Any], column: Any) -> tuple[str, ...]:
    """Return tokens; reading a file, pandas takes NA for nothing and 7 for a number."""
    for value in values:
        if not isinstance(value, str):
            raise DataError(
                f"the column {column!r} must hold strings; got {value!r}: pandas.read_csv("
                "path, dtype=str, keep_default_na=False) leaves words such as NA and 7 as they are"
            )
    return tuple(values)


def _rows(values: Sequence[Any], column: Any) -> tuple[Row, ...]:
    for value in values:
        if not (_missing(value) or isinstance(value, str | Mapping)):
            raise TagError(
                f"the column {column!r} must hold names of tags such as B-PER; got {value!r}"
            )
    return tuple(None if _missing(value) else value for value in values)


def _listed(value: Any) -> Any:
    """Return arrays, which Parquet and datasets give for lists, as lists."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    return [_listed(v) for v in listed] if isinstance(listed, list | tuple) else listed


def _missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, NA or an empty string."""
    if value is None or (isinstance(value, str) and not value):
        return True
    scalar = not isinstance(value, str | Mapping | Sequence) and not hasattr(value, "tolist")
    return type(value).__name__ == "NAType" or (scalar and value != value)  # NaN differs from NaN
