"""Label Studio's tasks as sentences, its annotations as labels, and what a tagger finds as its results.

Offsets are in characters (code points), as Label Studio counts them itself; where an annotation's own text shows that somebody counted
UTF-16 units, they are mended. Annotators may select half a word: such a span grows to whole tokens, and of spans that overlap the longest
stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import tee
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqmix.data.formats.base import Options
from seqmix.data.formats.charspans import char_span, confirmed, from_spans, list_of
from seqmix.data.formats.records import MAX_DEPTH, is_deep
from seqmix.data.scheme import spans
from seqmix.data.sentence import Sentence
from seqmix.data.text import CharSpan, checked_offsets
from seqmix.errors import DataError
from seqmix.query.uncertainty import token_entropy
from seqmix.serve.labelstudio.labeling import Labeling

Json = dict[str, Any]
_LARGEST = 2**63  # SQLite's integers end here


class SuggestingPath(Protocol):
    """The best tags of a sentence, with the probability of each."""

    @property
    def tags(self) -> tuple[str, ...]:
        """One a token."""
        ...

    @property
    def by_token(self) -> tuple[float, ...]:
        """How sure the tagger is of each."""
        ...


class Suggesting(Protocol):
    """What is asked of a tagger here."""

    def best_paths(
        self, sentences: Iterable[Sentence], *, by_token: bool
    ) -> Iterator[Sequence[SuggestingPath]]:
        """The best path of each sentence first."""
        ...

    def probabilities(self, sentences: Iterable[Sentence]) -> Iterator[NDArray[np.float32]]:
        """p(tag | token) of each sentence."""
        ...


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
    """The id of a task or annotation, once it is certain that it is one."""
    id = record.get("id") if isinstance(record, dict) else None
    if type(id) is not int or not 0 <= id < _LARGEST:
        raise DataError(
            f'expected {what} to be an object with a whole number as "id"', text=str(record)
        )
    return id


def data_of(task: Json) -> Json:
    """The data of a task; strings without half characters, which a browser can send and no tokenizer can read."""
    data = task.get("data")
    if is_deep(data):
        raise DataError(f'expected "data" of at most {MAX_DEPTH} levels')
    if not isinstance(data, dict):
        raise DataError('expected a task with "data"', text=str(task))
    return {key: _whole(value) if isinstance(value, str) else value for key, value in data.items()}


def annotation_of(record: Any, task: int, control: str) -> Annotation:
    """An annotation from outside, what it says for our control tag checked as far as can be done without its text."""
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
    return Annotation(
        id,
        task,
        results,
        bool(record.get("was_cancelled")),
        bool(record.get("ground_truth")),
        _whole(updated or ""),
    )


def annotations_of(task: Json, control: str) -> list[Annotation]:
    """The annotations a task brings along; those that cannot be read are passed over, so that they stand in nobody's way."""
    found = []
    for record in task["annotations"] if isinstance(task.get("annotations"), list) else ():
        with suppress(DataError):
            found.append(annotation_of(record, id_of(task, "a task"), control))
    return found


def sentence_of(
    id: int, data: Json, labeling: Labeling, result: list[Json] | None = None
) -> Sentence | None:
    """The sentence of a task, labeled by the result of an annotation if there is one; None when the task has no text."""
    text = data.get(labeling.key)
    if not isinstance(text, str):
        return None
    options = Options(misaligned="expand")
    found = (
        None
        if result is None
        else [span for one in result for span in _spans(one, labeling, text, options)]
    )
    try:
        offsets = None if data.get("tokens") is None else checked_offsets(data["tokens"], text)
    except DataError:
        offsets = None  # some other field that happens to be called "tokens"
    return from_spans(str(id), text, found, options, offsets)


def suggestions(
    tagger: Suggesting, sentences: Iterable[Sentence], labeling: Labeling
) -> Iterator[tuple[list[Json], float]]:
    """The result for each sentence, and how unsure the tagger is of it (mean token entropy)."""
    for_paths, for_probs, own = tee(sentences, 3)
    everything = zip(
        own,
        tagger.best_paths(for_paths, by_token=True),
        tagger.probabilities(for_probs),
        strict=True,
    )
    for sentence, paths, probs in everything:
        yield results(sentence, paths[0], labeling), token_entropy(probs) if len(probs) else 0.0


def results(sentence: Sentence, path: SuggestingPath, labeling: Labeling) -> list[Json]:
    """The spans of a path in Label Studio's format; a region's score is the probability of its least certain token."""
    text, offsets = sentence.located()
    found = [span for span in spans(path.tags) if span.type in labeling.types]
    return [
        {
            "id": f"seqmix-{number}",
            "from_name": labeling.control,
            "to_name": labeling.object,
            "type": "labels",
            "value": {
                "start": (a := offsets[s.start][0]),
                "end": (b := offsets[s.end - 1][1]),
                "text": text[a:b],
                "labels": [s.type],
            },
            "score": round(min(path.by_token[s.start : s.end]), 4),
        }
        for number, s in enumerate(found, 1)
    ]


def _labels(result: Json) -> list[tuple[int, int, str]]:
    """Start, end and label of a region; none where it is no labeled span of a text (a choice, a relation, a span without label)."""
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
    for start, end, label in _labels(result):
        span = confirmed(CharSpan(start, end, label), result["value"].get("text"), text, options)
        if span is not None and label in labeling.types:
            yield span


def _whole(text: str) -> str:
    """Half of a surrogate pair becomes the replacement character, so every offset stays true."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
