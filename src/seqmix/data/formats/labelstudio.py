"""Label Studio: its JSON export (an array of tasks), or tasks one a line.

Of the annotations of a task the last that was not cancelled counts; an empty one says that nothing in the text is a span. Predictions are
never read as labels: a task that has nothing else is unlabeled. Written tasks can be imported into a project whose configuration names its
parts as the templates do: <Labels name="label" toName="text"> and <Text name="text" value="$text">.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seqmix.data.formats.base import Format, Options, at
from seqmix.data.formats.charspans import (
    char_span,
    confirmed,
    from_spans,
    list_of,
    surface,
    to_spans,
)
from seqmix.data.formats.records import identify, json_records, write_records
from seqmix.data.sentence import Sentence
from seqmix.data.text import CharSpan, checked_offsets, tokenize
from seqmix.errors import DataError

_ELSEWHERE = (
    "hypertextlabels",
    "paragraphlabels",
    "timeserieslabels",
)  # spans whose offsets are not in the text


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """One sentence a task; its id is the data's own, or Label Studio's, or `stem:line`."""
    for line, task, text in json_records(path):
        with at(path, line, text):
            yield _sentence(task, path, line, options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """An array of tasks; one a line where the name ends in .jsonl."""
    write_records((_task(sentence, options) for sentence in sentences), path)


def _sentence(task: dict[str, Any], path: Path, line: int, options: Options) -> Sentence:
    data = task.get("data")
    if not isinstance(data, dict):
        raise DataError('expected a task with "data"')
    results = _results(task)
    text = _text(data, results or [])
    found = (
        None
        if results is None
        else [span for result in results for span in _spans(result, text, options)]
    )
    offsets = (
        None if data.get("tokens") is None else checked_offsets(data["tokens"], text, '"tokens"')
    )
    return from_spans(
        identify(data if data.get("id") is not None else task, path, line),
        text,
        found,
        options,
        offsets,
    )


def _results(task: dict[str, Any]) -> list[dict[str, Any]] | None:
    """What the last annotation says; None when there is none."""
    annotations = list_of(task, "annotations") if task.get("annotations") is not None else []
    if not all(isinstance(annotation, dict) for annotation in annotations):
        raise DataError('expected "annotations" to be objects with a "result"')
    valid = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    if not valid:
        return None
    results = list_of(valid[-1], "result")
    if not all(isinstance(result, dict) for result in results):
        raise DataError('expected "result" to be a list of objects')
    return results


def _text(data: dict[str, Any], results: list[dict[str, Any]]) -> str:
    """The text that was labeled: "text", the field the results point to, or the only string there is."""
    for key in ("text", *(str(result.get("to_name")) for result in results)):
        if isinstance(data.get(key), str):
            return str(data[key])
    strings = [value for key, value in data.items() if isinstance(value, str) and key != "id"]
    if len(strings) != 1:
        raise DataError(
            'expected the task\'s data to have "text", or a single field that is a string',
            text=str(list(data)),
        )
    return strings[0]


def _spans(result: dict[str, Any], text: str, options: Options) -> Iterator[CharSpan]:
    if result.get("type") in _ELSEWHERE:
        raise DataError(
            "expected results of type labels on plain text", text=str(result.get("type"))
        )
    if result.get("type") != "labels":
        return
    value = result.get("value")
    if not isinstance(value, dict):
        raise DataError(
            'expected a result to have a "value" with "start", "end" and "labels"', text=str(result)
        )
    for label in list_of(value, "labels"):
        span = confirmed(
            char_span(value.get("start"), value.get("end"), label), value.get("text"), text, options
        )
        if span is not None:
            yield span


def _task(sentence: Sentence, options: Options) -> dict[str, Any]:
    text, offsets = surface(sentence, options)
    data: dict[str, Any] = {"id": sentence.id, "text": text}
    if tokenize(text) != offsets:
        data["tokens"] = [list(pair) for pair in offsets]
    task: dict[str, Any] = {"data": data}
    if sentence.labeled:
        task["annotations"] = [
            {
                "result": [
                    _result(span, number, text)
                    for number, span in enumerate(to_spans(sentence, offsets), 1)
                ]
            }
        ]
    return task


def _result(span: CharSpan, number: int, text: str) -> dict[str, Any]:
    value = {
        "start": span.start,
        "end": span.end,
        "text": text[span.start : span.end],
        "labels": [span.type],
    }
    return {
        "id": f"span{number}",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": value,
    }


FORMAT = Format(
    "labelstudio",
    read,
    write,
    suffixes=(".json",),
    record=lambda r: isinstance(r.get("data"), dict),
    holds=frozenset({"tokens", "id", "text"}),
)
