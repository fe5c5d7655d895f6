"""An answer in doubt as somebody reviews it: the answer, what speaks against it, what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE
from seqmix.errors import DataError, NotFoundError, StaleError
from seqmix.serve.review.doubts import Review
from seqmix.serve.review.evidence import Doubt
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.records import Annotator, Event, Mark, Ranges
from seqmix.serve.store.sentences import as_answer, read_labeled_by_id
from seqmix.serve.store.store import Store


@dataclass(frozen=True)
class AnswerInDoubt:
    """The answer that a review is about, for somebody who may correct it."""

    sentence: Sentence
    spans: tuple[Mark, ...]
    sure: Ranges | None
    annotator: str | None  # None: labels of the seed
    mine: bool
    kind: str  # what a correction is: the label of who gave the answer, else an adjudication
    version: int  # to send back with a correction


def read_answer(store: Store, reader: Annotator, id: str, seq: int | None) -> AnswerInDoubt:
    """Return the answer that counts, if it is still the one with this event."""
    sentence = next(iter(read_labeled_by_id(store, [id])), None)
    if sentence is None:
        raise NotFoundError("answer to", id)
    answer = next((a for a in current_answers(store, id, overridden=True) if a.seq == seq), None)
    if answer is None and seq is not None:
        raise StaleError("this answer has been changed since; load the list again", seq)
    mine = answer is not None and answer.annotator_id == reader.id
    kind = "label" if mine and answer is not None and answer.kind == "label" else "adjudicate"
    version = answer_version(store, id, reader.id if kind == "label" else None)
    content = (answer.spans, answer.sure) if answer is not None else as_answer(sentence)
    annotator = None if answer is None else answer.annotator
    return AnswerInDoubt(sentence, *content, annotator, mine, kind, version)


def proposal(
    doubt: Doubt, answered: Sequence[Mark], tags: Collection[str]
) -> tuple[Mark, ...] | None:
    """Return the answer that a doubt speaks for; None where it names none."""
    details = doubt.details
    if doubt.kind == "model":
        spans = tuple(Mark(start, end, tag) for start, end, tag, _ in details["spans"])
    elif doubt.kind == "inconsistent":
        start, end, usual = details["start"], details["end"], details["usual"]
        apart = [mark for mark in answered if mark.end <= start or mark.start >= end]
        spans = (*apart, *([] if usual == OUTSIDE else [Mark(start, end, usual)]))
    else:
        return None
    known = all(mark.tag in tags for mark in spans)  # a tag may have been retired since
    return tuple(sorted(spans)) if known else None


def correct_answer(
    store: Store,
    reader: Annotator,
    id: str,
    seq: int | None,
    marks: Iterable[Mark],
    sure: Iterable[tuple[int, int]] | None,
    seconds: float,
    version: int,
    tag_change: int | None = None,
) -> tuple[Event, AnswerInDoubt]:
    """Correct an answer in doubt: with a new answer of who gave it, else as an admin decides.

    `tag_change` is the last change of the tags that the reader knows (default: all).
    """
    before = read_answer(store, reader, id, seq)
    if before.kind == "adjudicate" and not reader.admin:
        raise NotFoundError("doubt about an answer of yours to", id)
    if before.kind == "adjudicate" and sure is not None:
        raise DataError("an admin decides about a whole sentence; expected no sure part")
    content = (marks, sure, seconds, version)
    event = save_answer(store, id, reader.id, before.kind, *content, tag_change=tag_change)
    return event, before


def texts_of(store: Store, reviews: Iterable[Review]) -> dict[str, Sentence]:
    """Return the sentences that doubts name as examples, by id."""
    ids = {
        place[0]
        for review in reviews
        for doubt in review.doubts
        for place in doubt.details.get("examples", ())
    }
    return {sentence.id: sentence for sentence in read_labeled_by_id(store, sorted(ids))}
