"""What a model says of the audit sentences and of the open ones, kept in the project's folder.

The model has learned from the answers alone: not from the audit, and not from open sentences as
teachers tagged them, of which it would be surer than of audit sentences.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seqmix.data.files import replacing
from seqmix.serve.store.records import Mark

FILE = "certain.jsonl"  # in the folder of the models
PREDICT_NOW = "predict_now"  # note: somebody wants these predictions
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ModelAnswer:
    """The most probable tagging of a sentence, and its probability as a whole."""

    id: str
    confidence: float
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class ModelAnswers:
    """The predictions of one model."""

    at: float
    answers: int  # that it learned from
    tag_change: int  # the last change of the tags that it knew
    audit: Sequence[ModelAnswer]
    open: Sequence[ModelAnswer]


def write_model_answers(models: Path, predictions: ModelAnswers) -> None:
    """Replace the predictions of a project."""
    state = {
        "format_version": FORMAT_VERSION,
        "at": predictions.at,
        "answers": predictions.answers,
        "tag_change": predictions.tag_change,
        "audit": len(predictions.audit),
    }
    with replacing(models / FILE) as beside, beside.open("w", encoding="utf-8") as file:
        for row in (state, *map(_row, predictions.audit), *map(_row, predictions.open)):
            file.write(json.dumps(row) + "\n")


def _row(prediction: ModelAnswer) -> list[object]:
    confidence = float(f"{prediction.confidence:.6g}")
    return [prediction.id, confidence, [list(mark) for mark in prediction.marks]]


def read_model_answers(models: Path) -> ModelAnswers | None:
    """Return the predictions of a project; damaged ones count as none, since they can be redone."""
    try:
        with (models / FILE).open(encoding="utf-8") as file:
            state, *rows = [json.loads(line) for line in file]
        if state["format_version"] != FORMAT_VERSION:
            return None
        said = [
            ModelAnswer(str(id), float(confidence), tuple(Mark(*mark) for mark in marks))
            for id, confidence, marks in rows
        ]
        n = int(state["audit"])
        tags = int(state["tag_change"])
        return ModelAnswers(float(state["at"]), int(state["answers"]), tags, said[:n], said[n:])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
