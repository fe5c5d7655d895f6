"""Label Studio's tasks as sentences, its annotations as labels, and suggestions as its results.

Offsets are in characters (code points), as Label Studio counts them; where an annotation's own text
shows that somebody counted UTF-16 units, they are corrected. Annotators may select half a word:
such a span grows to whole tokens, and of spans that overlap the longest is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from seqmix.data.formats.base import Options
from seqmix.data.formats.charspans import char_span, confirmed, from_spans, list_of
from seqmix.data.formats.records import MAX_DEPTH, is_deep
from seqmix.data.sentence import Sentence
from seqmix.data.text import CharSpan, checked_offsets
from seqmix.errors import DataError
from seqmix.serve.labelstudio.labeling import Labeling

Json = dict[str, Any]
_LARGEST = 2**63  # the integers of a database end here


@dataclass(frozen=True)
class Annotation:
    """One annotator's answer to a task."""

    id: int
    task: int
    result: list[Json]
    cancelled: bool  # skipped
    truth: bool  # marked as ground truth
    updated: str  # ISO time: later ones win


def id_of(record: Any, what: str) -> int:
    """Return the id of a task or annotation, once it is certain that it is one."""
    id = record.get("id") if isinstance(record, dict) else None
    if type(id) is not int or not 0 <= id < _LARGEST:
        raise DataError(
            f'expected {what} to be an object with a whole number as "id"', text=str(record)
        )
    return id


def data_of(task: Json) -> Json:
    """Return the data of a task; browsers can send half characters, which are replaced."""
    data = task.get("data")
    if is_deep(data):
        raise DataError(f'expected "data" of at most {MAX_DEPTH} levels')
    if not isinstance(data, dict):
        raise DataError('expected a task with "data"', text=str(task))
    return {key: _whole(value) if isinstance(value, str) else value for key, value in data.items()}


def annotation_of(record: Any, task: int, control: str) -> Annotation:
    """Return an annotation, checked as far as can be done without its text."""
    if is_deep(record):
        raise DataError(f"expected an annotation of at most {MAX_DEPTH} levels")
    id = id_of(record, "an annotation")
    results = list_of(record, "result") if record.get("result") is not None else []
    for result in results:
        if not isinstance(result, dict):
            raise DataError('expected "result" to be a list of objects', text=str(result))
        if result.get("from_name", control) == control:
            _labels(result)
    updated = record.get("updated_at")
    if not isinstance(updated, str | None) or len(updated or "") > 40:
        raise DataError('expected "updated_at" to be a time', text=str(updated))
    cancelled, truth = bool(record.get("was_cancelled")), bool(record.get("ground_truth"))
    return Annotation(id, task, results, cancelled, truth, _whole(updated or ""))


def annotations_of(task: Json, control: str) -> list[Annotation]:
    """Return the annotations that come with a task; those that cannot be read are left out."""
    annotations = []
    for record in task["annotations"] if isinstance(task.get("annotations"), list) else ():
        with suppress(DataError):
            annotations.append(annotation_of(record, id_of(task, "a task"), control))
    return annotations


def sentence_of(
    id: int, data: Json, labeling: Labeling, result: list[Json] | None = None
) -> Sentence | None:
    """Return the sentence of a task, labeled if there is a result; None for a task without text."""
    text = data.get(labeling.key)
    if not isinstance(text, str):
        return None
    options = Options(misaligned="expand")
    spans = None
    if result is not None:
        spans = [span for region in result for span in _spans(region, labeling, text, options)]
    try:
        offsets = None if data.get("tokens") is None else checked_offsets(data["tokens"], text)
    except DataError:
        offsets = None  # some other field that happens to be called "tokens"
    return from_spans(str(id), text, spans, options, offsets)


def results(
    sentence: Sentence, spans: Iterable[Mapping[str, Any]], labeling: Labeling
) -> list[Json]:
    """Return suggested spans of tokens as regions; the score is the one of the least sure token."""
    text, offsets = sentence.located()
    labels = {tag: label for label, tag in labeling.tags.items()}
    regions = []
    for number, span in enumerate((span for span in spans if span["tag"] in labels), 1):
        start, end = offsets[span["start"]][0], offsets[span["end"] - 1][1]
        value = {
            "start": start,
            "end": end,
            "text": text[start:end],
            "labels": [labels[span["tag"]]],
        }
        regions.append(
            {
                "id": f"seqmix-{number}",
                "from_name": labeling.control,
                "to_name": labeling.object,
                "type": "labels",
                "value": value,
                "score": span.get("confidence", 1.0),
            }
        )
    return regions


def _labels(result: Json) -> list[tuple[int, int, str]]:
    """Return start, end and label of a region; nothing where it is not a labeled span of a text."""
    value = result.get("value")
    if result.get("type") != "labels" or not isinstance(value, dict) or value.get("labels") is None:
        return []
    marks = [
        char_span(value.get("start"), value.get("end"), label) for label in list_of(value, "labels")
    ]
    return [(mark.start, mark.end, mark.type) for mark in marks]


def _spans(result: Json, labeling: Labeling, text: str, options: Options) -> Iterator[CharSpan]:
    if result.get("from_name", labeling.control) != labeling.control:
        return
    tags = labeling.tags
    for start, end, label in _labels(result):
        span = confirmed(CharSpan(start, end, label), result["value"].get("text"), text, options)
        if span is not None and label in tags:
            yield CharSpan(span.start, span.end, tags[label])


def _whole(text: str) -> str:
    """Replace halves of surrogate pairs, so that every offset stays true."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
