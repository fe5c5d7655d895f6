"""Label Studio: its JSON export (an array of tasks), or one task per line.

The last annotation of a task that was not cancelled counts; an empty one means that nothing in the
text is a span.
Predictions are never read as labels: a task that has nothing else is unlabeled.
Written tasks can be imported into a project whose configuration has the names of the templates:
<Labels name="label" toName="text"> and <Text name="text" value="$text">.
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
    offsets_of,
    surface,
    to_spans,
    unusual_offsets,
)
from seqmix.data.formats.records import identify, json_records, write_records
from seqmix.data.sentence import Sentence
from seqmix.data.text import CharSpan
from seqmix.errors import DataError

# Results whose offsets are not offsets of the text.
_NOT_TEXT = ("hypertextlabels", "paragraphlabels", "timeserieslabels")


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per task; its id is that of the data, of Label Studio, or `stem:line`."""
    for line, task, text in json_records(path):
        with at(path, line, text):
            yield _sentence(task, path, line, options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write an array of tasks, or one task per line if the name ends in .jsonl."""
    write_records((_task(sentence, options) for sentence in sentences), path)


def _sentence(task: dict[str, Any], path: Path, line: int, options: Options) -> Sentence:
    data = task.get("data")
    if not isinstance(data, dict):
        raise DataError('expected a task with "data"')
    results = _results(task)
    text = _text(data, results or [])
    labels = None
    if results is not None:
        labels = [span for result in results for span in _spans(result, text, options)]
    id = identify(data if data.get("id") is not None else task, path, line)
    return from_spans(id, text, labels, options, offsets_of(data, text))


def _results(task: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the results of the last annotation, or None if there is none."""
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
    """Return the field "text", the field that the results point to, or the only string."""
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
    if result.get("type") in _NOT_TEXT:
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
    data: dict[str, Any] = {"id": sentence.id, "text": text, **unusual_offsets(text, offsets)}
    task: dict[str, Any] = {"data": data}
    if sentence.labeled:
        spans = enumerate(to_spans(sentence, offsets), 1)
        task["annotations"] = [{"result": [_result(span, n, text) for n, span in spans]}]
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
