"""What speaks against an answer: a model that has not seen it, and other answers to the same text.

A score is between 0 and 1, so that doubts of all kinds can be put in one order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, Span, spans

_LONGEST = 8  # tokens of a text that is looked for elsewhere
_EXAMPLES = 3  # sentences named as evidence
Place = tuple[str, int, int]  # a sentence id, and the tokens from start up to but not including end


@dataclass(frozen=True)
class Opinion:
    """What a model that has not seen an answer says of it."""

    tags: tuple[str, ...]  # its best tags
    by_token: tuple[float, ...]  # the probability of each of these
    answered: tuple[float, ...]  # the probability of each tag of the answer, 1 where there is none


@dataclass(frozen=True)
class Doubt:
    """What speaks against the answer to a sentence."""

    sentence_id: str
    kind: str  # model, inconsistent, annotators or split
    score: float
    details: Mapping[str, Any]
    seq: int | None = None  # the event of the answer; None: labels of the seed


def answered_spans(sentence: Sentence) -> list[Span]:
    """Return the spans of an answer; tokens that it says nothing about are outside."""
    return spans([OUTSIDE if row is None else str(row) for row in sentence.hardened().tags])


def model_doubt(sentence: Sentence, opinion: Opinion) -> Doubt | None:
    """Return how far a model's best tags speak against an answer; None where they agree.

    The score is the model's probability that the least probable tag of the answer is wrong.
    """
    seen = [
        OUTSIDE if row is None else tag
        for row, tag in zip(sentence.tags, opinion.tags, strict=True)
    ]
    if spans(seen) == answered_spans(sentence):
        return None
    marks = [
        [span.start, span.end, span.type, round(min(opinion.by_token[span.start : span.end]), 4)]
        for span in spans(seen)
    ]
    score = 1.0 - min(opinion.answered)
    return Doubt(sentence.id, "model", score, {"spans": marks})


def inconsistencies(sentences: Iterable[Sentence]) -> list[Doubt]:
    """Return doubts about texts that most answers tag otherwise: one a sentence, the strongest.

    A text inside a longer span is none of these: "China" in "Bank of China" is no other reading.
    """
    answers = {sentence.id: sentence for sentence in sentences}
    tagged = {id: answered_spans(sentence) for id, sentence in answers.items()}
    names = {
        answers[id].tokens[span.start : span.end]
        for id, marked in tagged.items()
        for span in marked
        if span.end - span.start <= _LONGEST
    }
    readings: dict[tuple[str, ...], dict[str, list[Place]]] = {}
    for id, sentence in answers.items():
        for place, reading in _readings(sentence, tagged[id], names):
            by_reading = readings.setdefault(sentence.tokens[place[1] : place[2]], {})
            by_reading.setdefault(reading, []).append(place)
    doubts: dict[str, Doubt] = {}
    for by_reading in readings.values():
        for doubt in _minorities(by_reading):
            before = doubts.get(doubt.sentence_id)
            if before is None or before.score < doubt.score:
                doubts[doubt.sentence_id] = doubt
    return sorted(doubts.values(), key=lambda doubt: (-doubt.score, doubt.sentence_id))


def _readings(
    sentence: Sentence, marked: Sequence[Span], names: set[tuple[str, ...]]
) -> Iterable[tuple[Place, str]]:
    """Yield where a name occurs in a sentence and how it is tagged, O for not at all."""
    closed = np.zeros(len(sentence), dtype=bool)  # in a span, or not asked about
    for span in marked:
        closed[span.start : span.end] = True
        if sentence.tokens[span.start : span.end] in names:
            yield (sentence.id, span.start, span.end), span.type
    closed |= np.array([row is None for row in sentence.tags], dtype=bool)
    for start in np.flatnonzero(~closed).tolist():
        for end in range(start + 1, min(start + _LONGEST, len(sentence)) + 1):
            if closed[end - 1]:
                break
            if sentence.tokens[start:end] in names:
                yield (sentence.id, start, end), OUTSIDE


def _minorities(by_reading: Mapping[str, Sequence[Place]]) -> Iterable[Doubt]:
    """Yield doubts about all readings of a text but the most frequent one."""
    counts = Counter({reading: len(places) for reading, places in by_reading.items()})
    if len(counts) < 2:
        return
    (usual, most), total = counts.most_common(1)[0], counts.total()
    for reading, places in by_reading.items():
        if counts[reading] == most:
            continue
        score = (most - counts[reading]) / (total + 1)
        for id, start, end in places:
            examples = [place for place in by_reading[usual] if place[0] != id][:_EXAMPLES]
            details = {
                "start": start,
                "end": end,
                "reading": reading,
                "usual": usual,
                "counts": dict(counts),
                "examples": [list(place) for place in examples],
            }
            yield Doubt(id, "inconsistent", score, details)


def together(scores: Iterable[float]) -> float:
    """Return one score for several doubts about an answer, as if each were evidence of its own.

    >>> together([0.5, 0.5])
    0.75
    """
    return float(1.0 - np.prod([1.0 - score for score in scores]))
