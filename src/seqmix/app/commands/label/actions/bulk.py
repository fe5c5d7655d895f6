"""Actions that accept what a model is sure of, at an error rate that holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from seqmix.app.commands.label.actions.annotators import annotator_id
from seqmix.app.commands.label.actions.call import Call
from seqmix.app.console import emit, say
from seqmix.errors import ConfigError

if TYPE_CHECKING:
    from seqmix.serve.review.bulk import Preview


def predict(call: Call) -> None:
    """Ask the trainer of a running page for predictions."""
    from seqmix.serve.review.model_answers import PREDICT_NOW

    with call.open() as project:
        project.store.write_note(PREDICT_NOW, time.time())
    say("the trainer of a running page predicts the open sentences when no model is due")


def show(call: Call) -> None:
    """Print what may be accepted."""
    from seqmix.serve.review.bulk import predictions_of, preview

    alpha = _rate(call.words[0])
    with call.open() as project:
        predictions = predictions_of(project.models)
        emit(_line(preview(project.store, predictions, alpha, project.settings.audit_train)))


def accept(call: Call) -> None:
    """Accept it, and print how to take it back."""
    from seqmix.serve.review import bulk

    alpha = _rate(call.words[0])
    with call.open() as project:
        person = annotator_id(project, call.words[1])
        predictions = bulk.predictions_of(project.models)
        learns = project.settings.audit_train
        accepted = bulk.accept(project.store, predictions, person, alpha, learns)
    emit(f"{accepted.accepted} sentences accepted as batch {accepted.batch}")
    say(f"seqmix project {call.folder} bulk undo {accepted.batch} takes them back")


def undo(call: Call) -> None:
    """Undo one bulk accept."""
    from seqmix.serve.store.batches.batches import read_batch, undo_batch
    from seqmix.serve.store.batches.bulk import ACCEPT

    (word,) = call.words
    if not word.isdecimal():
        raise ConfigError(f"a batch is a number, as bulk accept prints it; got {word!r}")
    with call.open() as project:
        batch = read_batch(project.store, int(word))
        if batch.kind != ACCEPT:
            raise ConfigError(f"batch {word} was not made by bulk accept")
        undone = undo_batch(project.store, batch.id, batch.annotator_id)
    stay = f"; {undone.changed} that people have changed since stay" if undone.changed else ""
    emit(f"{undone.cancelled} sentences taken back{stay}")


def _rate(word: str) -> float:
    try:
        return float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError as error:
        raise ConfigError(f"RATE must look like 0.02 or 2%; got {word!r}") from error


def _why_nothing(shown: Preview) -> str:
    from seqmix.serve.review.guarantee import FEW_OPEN, MANY_ERRORS

    result = shown.guarantee
    if result.why == FEW_OPEN:
        return f"this requires more open sentences with a prediction; there are {result.open}"
    if result.why == MANY_ERRORS:
        return (
            f"{result.errors} of the {result.audits} audit answers that the model is most sure of"
            " are wrong, which is too many"
        )
    lost = f", of which {result.lost} do not count, as a model asked for as large a share"
    return (
        f"this requires at least {shown.least} audit answers that the model is sure of, with at"
        f" most one wrong; there are {result.answered} audit answers in all"
        f"{lost if result.lost else ''}"
    )


def _line(shown: Preview) -> str:
    result = shown.guarantee
    if not result.accepted:
        why = _why_nothing(shown)
        return f"nothing can be accepted at an error rate of {result.alpha:g}: {why}"
    return (
        f"{result.accepted} of {result.open} open sentences at an error rate of at most"
        f" {result.alpha:g}, with 95% confidence: {result.errors} of {result.audits} audit answers"
        f" are wrong where the model is as sure; the expected rate is {result.expected:.3f}"
    )
