"""Accept all open sentences that a model is sure of, at an error rate of at most alpha.

preview   what would be accepted; nothing is saved
accept    answer them in the stream `bulk`, as one batch that one undo takes back
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import select

from seqmix.errors import ConfigError, DataError, StaleError
from seqmix.serve.review.guarantee import (
    LEVEL,
    Guarantee,
    Judged,
    calibration,
    guarantee,
    least_audits,
)
from seqmix.serve.review.model_answers import ModelAnswer, ModelAnswers, read_model_answers
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.bulk import ACCEPT, accept_answers, untouched
from seqmix.serve.store.current import gold_answers, read_counts
from seqmix.serve.store.records import Answer, Mark
from seqmix.serve.store.schema import current, queue
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory

LEAST_ALPHA, MOST_ALPHA = 0.001, 0.5


@dataclass(frozen=True)
class Preview:
    """What may be accepted now."""

    guarantee: Guarantee
    # the least certain first, as these are worth a look; their confidence is calibrated
    chosen: Sequence[ModelAnswer]
    at: float  # when the model made its predictions
    answers: int  # that the model learned from
    least: int  # audit answers as sure as the threshold that it takes, with one error

    def to_json(self) -> dict[str, object]:
        """Return all but the sentences."""
        known = {"at": self.at, "answers": self.answers, "least": self.least, "level": LEVEL}
        return {**asdict(self.guarantee), **known}


@dataclass(frozen=True)
class Accepted:
    """A batch, and how many sentences are in it."""

    batch: int
    accepted: int


def preview(
    store: Store, predictions: ModelAnswers, alpha: float, audit_train: bool = False
) -> Preview:
    """Return what may be accepted at an error rate of at most `alpha`."""
    if not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        raise DataError(
            f"the error rate must be between {LEAST_ALPHA:g} and {MOST_ALPHA:g}; got {alpha:g}"
        )
    if audit_train:
        raise ConfigError(
            "models of this project learn from the audit answers (audit_train), so nothing says"
            " how often they are wrong; set audit_train=false and wait for new audit answers"
        )
    judged = list(_judged(store, predictions))
    free, tags = untouched(store), store.tag_history()
    candidates = [said for said in predictions.open if said.id in free]
    kept = {said.id: _marks(said, predictions, tags) for said in candidates}
    usable = [said for said in candidates if kept[said.id] is not None]
    counts = read_counts(store)
    people = counts.active - counts.bulk
    asked = people / max(1, people + len(free))
    result = guarantee(judged, [said.confidence for said in usable], alpha, asked=asked)
    reaching = [
        said
        for said in sorted(usable, key=lambda said: (said.confidence, said.id))
        if result.threshold is not None and said.confidence >= result.threshold
    ]
    confidences = calibration(judged)(np.array([said.confidence for said in reaching]))
    chosen = [
        ModelAnswer(said.id, confidence, kept[said.id] or ())
        for said, confidence in zip(reaching, confidences.tolist(), strict=True)
    ]
    least = least_audits(alpha, result.open)
    return Preview(result, chosen, predictions.at, predictions.answers, least)


def accept(
    store: Store,
    predictions: ModelAnswers,
    annotator_id: int,
    alpha: float,
    audit_train: bool = False,
    pause: Callable[[], None] | None = None,
) -> Accepted:
    """Accept what `preview` shows; sentences that somebody opens meanwhile are left to them."""
    shown = preview(store, predictions, alpha, audit_train)
    if not shown.chosen:
        raise DataError(f"nothing may be accepted at an error rate of {alpha:g}")
    batch = add_batch(store, ACCEPT, annotator_id, shown.to_json())
    answers = [(said.id, said.marks) for said in shown.chosen]
    more = {} if pause is None else {"pause": pause}
    return Accepted(batch, accept_answers(store, batch, annotator_id, answers, **more))


def predictions_of(models: Path, at: float | None = None) -> ModelAnswers:
    """Return the predictions of a project; refuse others than those that were shown."""
    predictions = read_model_answers(models)
    if predictions is None:
        raise DataError(
            "no model has predicted the open sentences yet; ask for it on the page Review,"
            " or with seqmix project FOLDER bulk predict while the page runs"
        )
    if at is not None and predictions.at != at:
        raise StaleError(
            "a model has made new predictions since then; look at the preview again", 0
        )
    return predictions


def _judged(store: Store, predictions: ModelAnswers) -> Iterator[Judged]:
    """Yield the audit answers with what the model said before it saw them.

    What cannot be compared counts against the model: answers to a part of a sentence, and sentences
    that were skipped. Answers from before a tag was looked for say nothing and are left out.
    """
    tags, said = store.tag_history(), {p.id: p for p in predictions.audit}
    for answer in gold_answers(store, "audit"):
        if answer.sentence_id in said and not answer.unasked:
            prediction = said[answer.sentence_id]
            marks = _marks(prediction, predictions, tags)
            yield Judged(prediction.confidence, _is_right(answer, marks))
    skipped = (
        select(queue.c.sentence_id)
        .join(current, current.c.sentence_id == queue.c.sentence_id)
        .where(queue.c.stream == "audit", queue.c.gold.is_(None), current.c.kind == "skip")
        .distinct()
    )
    with store.reading() as conn:
        for id in conn.execute(skipped).scalars():
            if id in said:
                yield Judged(said[id].confidence, False)


def _is_right(answer: Answer, marks: tuple[Mark, ...] | None) -> bool:
    whole = answer.sure is None and not answer.open
    return whole and marks is not None and sorted(answer.spans) == sorted(marks)


def _marks(
    said: ModelAnswer, predictions: ModelAnswers, tags: TagHistory
) -> tuple[Mark, ...] | None:
    """Return predicted marks with the tags of now; None where a tag was split since."""
    marks, opened = tags.marks(said.marks, tags.at_change(predictions.tag_change))
    return None if opened else marks
