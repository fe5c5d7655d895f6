"""`seqmix evaluate`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import emit
from seqmix.app.options import group
from seqmix.app.read_data import (
    Comment,
    Data,
    FormatName,
    Key,
    Misaligned,
    Quiet,
    TagColumn,
    TokenColumn,
    format_options,
    labeled_data,
)
from seqmix.data.latest_model import newest_model, using_model
from seqmix.data.scoring import Score, score
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

_model, _training = group("The model"), group("The training")


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            help="A folder written by train, a project, or a file of predictions with the same tokens."
        ),
    ],
    data: Data,
    json_out: Quiet = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    format: FormatName = None,
    tag_column: TagColumn = -1,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    key: Key = "UPOS",
    misaligned: Misaligned = "error",
) -> None:
    """Score a tagger, or a file of predictions, as conlleval does."""
    options = format_options(
        tag_column=tag_column,
        token_column=token_column,
        comment=comment,
        key=key,
        misaligned=misaligned,
    )
    gold = labeled_data(data, format, options)
    if (newest_model(model) / "tagger.json").exists():
        from seqmix.tagger import Tagger

        with using_model(model) as folder:
            tagger = Tagger.load(folder, device)
        result = score_tagger(tagger, gold, data)
    else:
        found = labeled_data(str(model), None, options)
        if [s.tokens for s in found] != [s.tokens for s in gold]:
            raise DataError(
                "the predictions do not hold the same sentences as the gold data", model
            )
        result = score(_hard(gold, data), _hard(found, str(model)), split=data)
    emit(json.dumps(result.as_dict(), ensure_ascii=False) if json_out else result.report())


def _hard(sentences: Iterable[Sentence], name: str) -> list[list[str]]:
    """One tag a token. subtle: leaving out a missing one would move the tags behind it."""
    sentences = list(sentences)
    if any(None in sentence.tags for sentence in sentences):
        raise DataError("some tokens have no label, so an F1 would mean nothing", name)
    return [[str(tag) for tag in sentence.hardened().tags] for sentence in sentences]


def score_tagger(tagger: Any, gold: list[Sentence], split: str) -> Score:
    """Score a tagger on labeled sentences."""
    expected = _hard(gold, split)
    found = tagger.predict([sentence.unlabeled() for sentence in gold])
    return score(expected, _hard(found, "predictions"), split=split)
