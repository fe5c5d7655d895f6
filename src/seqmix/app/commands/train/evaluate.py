"""`seqmix evaluate`: F1 as conlleval computes it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import emit, say
from seqmix.app.options import Data, Device, Json, Read, ReadOptions, parse_read
from seqmix.app.reading.data import labeled_data
from seqmix.app.taggers import is_tagger, load_tagger, misfits
from seqmix.data.scoring import Score, score
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

Model = Annotated[
    Path,
    typer.Argument(
        help="A folder written by train, a project, or a file of predictions with the same tokens."
    ),
]


def evaluate(
    model: Model, data: Data, json_out: Json = False, read: Read = "", device: Device = None
) -> None:
    """Score a tagger, or a file of predictions, as conlleval does."""
    reading = parse_read(read)
    gold = labeled_data(data, reading)
    if is_tagger(model):
        tagger = load_tagger(model, device)
        result = score_tagger(tagger, gold, data)
        if notes := misfits(tagger):
            say("; ".join(notes))
    else:
        predicted = labeled_data(str(model), ReadOptions(None, reading.options))
        if [s.tokens for s in predicted] != [s.tokens for s in gold]:
            raise DataError(
                "the predictions do not hold the same sentences as the gold data", model
            )
        result = score(_hard(gold, data), _hard(predicted, str(model)), split=data)
    emit(json.dumps(result.as_dict(), ensure_ascii=False) if json_out else result.report())


def score_tagger(tagger: Any, gold: list[Sentence], split: str) -> Score:
    """Score a tagger on labeled sentences."""
    expected = _hard(gold, split)
    predicted = tagger.predict([sentence.unlabeled() for sentence in gold])
    return score(expected, _hard(predicted, "predictions"), split=split)


def _hard(sentences: Iterable[Sentence], name: str) -> list[list[str]]:
    """Return one tag per token; leaving out a missing one would shift the tags after it."""
    sentences = list(sentences)
    if any(None in sentence.tags for sentence in sentences):
        raise DataError("some tokens have no label, so an F1 would mean nothing", name)
    return [[str(tag) for tag in sentence.hardened().tags] for sentence in sentences]
