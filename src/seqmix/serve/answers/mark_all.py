"""Mark one, mark all: a span is marked wherever its text is, as one batch with its cause.

A person's answers without it are corrected, each by an event of the batch. Open sentences are
offered with the mark when their turn comes, which is for a person to keep; the batch is the rule.
Undo takes back both, and the marks in the sentence that was open when somebody marked all. Audit
answers stay as they are: they must be given by looking at each.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import func, select

from seqmix.data.sentence import Sentence
from seqmix.errors import TagError
from seqmix.serve.answers.same_text import Cause, Text, Unmarked, text_of, unmarked
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.batches import (
    AnswerBatch,
    Undone,
    add_batch,
    list_batches,
    read_batch,
    undo_batch,
)
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.records import Mark
from seqmix.serve.store.schema import batches, current
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory

MARK_ALL = "mark_all"  # the kind of these batches
MARKED = "marked before"  # the name of what they offer, as one of a source
PER_TRANSACTION = 20  # answers of one transaction, between which others save
PER_REQUEST = 200  # answers that are corrected in one go: a page asks again while there are more
_RULES = 500  # that are offered: the newest


@dataclass(frozen=True)
class Marked:
    """What marking all did."""

    batch: int
    answers: int  # corrected
    last: int | None  # the last event of the batch, which an undo may name
    more: bool  # answers are left: do it again


def mark_all(
    store: Store, annotator_id: int, cause: Cause, here: Iterable[tuple[int, int]] = ()
) -> Marked:
    """Correct a person's answers that do not mark a text, and offer the mark in open sentences.

    `here` is where the page marks it in the sentence of the cause, which is not saved yet.
    Repeated, also after it was interrupted, it continues the same batch.
    """
    if cause.tag not in store.read_tags():
        raise TagError(f"unknown tag; this project has {', '.join(store.tags)}", text=cause.tag)
    text, tokens = text_of(store, cause)
    places = [place for place in text.places(tokens) if place in set(here)]
    with store.writing():
        batch = _batch(store, annotator_id, cause, text, places)
    corrected, last, turn = 0, None, list[Unmarked]()
    for answer in unmarked(store, annotator_id, text, cause.tag, cause.sentence_id):
        turn.append(answer)
        if len(turn) == PER_TRANSACTION:
            corrected, last = _correct(store, batch, turn, cause.tag, corrected, last)
            turn = []
        if corrected >= PER_REQUEST:
            return Marked(batch.id, corrected, last, True)
    corrected, last = _correct(store, batch, turn, cause.tag, corrected, last)
    return Marked(batch.id, corrected, last, False)


def take_back(store: Store, batch_id: int, by: int) -> Undone:
    """Undo a batch, with the marks that marking all made in an answer that was saved after it."""
    with store.writing():
        batch = read_batch(store, batch_id)
        undone = undo_batch(store, batch_id, by)
        unmarked = batch.undone_at is None and _unmark(store, batch)
    return replace(undone, cancelled=undone.cancelled + unmarked)


def marked_here(store: Store, batch: AnswerBatch) -> tuple[Mark, ...]:
    """Return the marks that marking all made in the sentence of its cause, with the tags of now."""
    details, tags = batch.details, store.tag_history()
    marks = [Mark(start, end, details["tag"]) for start, end in details.get("here", ())]
    return tags.marks(marks, tags.at_change(details["tag_change"]))[0] if marks else ()


def _unmark(store: Store, batch: AnswerBatch) -> bool:
    """Correct the answer that was saved with these marks; return whether there is one."""
    here = set(marked_here(store, batch))
    id, who = batch.details.get("sentence_id", ""), batch.annotator_id
    for answer in current_answers(store, id, overridden=True) if here else ():
        later = answer.annotator_id == who and answer.kind == "label" and answer.at >= batch.at
        if later and not answer.open and here & {*answer.spans}:
            rest = [mark for mark in answer.spans if mark not in here]
            save_answer(
                store, id, who, "label", rest, answer.sure, 0.0, answer_version(store, id, who)
            )
            return True
    return False


def _batch(
    store: Store, annotator_id: int, cause: Cause, text: Text, here: list[tuple[int, int]]
) -> AnswerBatch:
    """Return the batch of a cause: the one that was begun, or a new one."""
    details = {**vars(cause), "tokens": list(text.tokens)}
    details["here"] = [list(place) for place in here]
    details["tag_change"] = store.tag_history().newest
    mine = (batches.c.kind == MARK_ALL, batches.c.annotator_id == annotator_id)
    for batch in list_batches(store, *mine, batches.c.undone_at.is_(None)):
        if batch.details == details:
            return batch
    add_batch(store, MARK_ALL, annotator_id, details)
    return list_batches(store, *mine)[0]


def _correct(
    store: Store,
    batch: AnswerBatch,
    answers: Iterable[Unmarked],
    tag: str,
    n: int,
    last: int | None,
) -> tuple[int, int | None]:
    """Correct some answers in one transaction; pass over those that were changed meanwhile."""
    who = batch.annotator_id
    with store.writing() as conn:
        for answer in answers:
            if not conn.execute(select(current.c.seq).where(current.c.seq == answer.seq)).first():
                continue
            id, version = answer.sentence_id, answer_version(store, answer.sentence_id, who)
            marks = [*answer.spans, *(Mark(start, end, tag) for start, end in answer.places)]
            content = (marks, answer.sure, 0.0, version)
            last = save_answer(store, id, who, "label", *content, batch=batch.id).seq
            n += 1
    return n, last


class MarkedTexts:
    """Texts that people marked everywhere, for open sentences; threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._known: tuple[object, ...] = ()
        self._batches: list[AnswerBatch] = []

    def marks(self, sentence: Sentence, only: int | None = None) -> tuple[Mark, ...]:
        """Return where marked texts are in a sentence; with `only`, those of one annotator."""
        marks, taken = list[Mark](), set[int]()
        with self._store.reading():
            tags, names = self._store.tag_history(), self._store.read_tags()
            rules = self._rules()
        folded = {token.casefold() for token in sentence.tokens}
        for rule in rules:
            if only is not None and rule.annotator_id != only:
                continue
            for mark in _marks(rule.details, sentence, folded, tags, names):
                if taken.isdisjoint(range(mark.start, mark.end)):
                    taken.update(range(mark.start, mark.end))
                    marks.append(mark)
        return tuple(sorted(marks))

    def _rules(self) -> list[AnswerBatch]:
        """Return the batches that are not undone, the newest first; read when there is a change."""
        counts = select(
            func.max(batches.c.id), func.max(batches.c.undone_at), func.count(batches.c.undone_at)
        )
        with self._store.reading() as conn:
            known = tuple(conn.execute(counts.where(batches.c.kind == MARK_ALL)).one())
        with self._lock:
            if known != self._known:
                alive = batches.c.kind == MARK_ALL, batches.c.undone_at.is_(None)
                self._known, self._batches = known, list_batches(self._store, *alive)[:_RULES]
            return self._batches


def _marks(
    details: Mapping[str, Any],
    sentence: Sentence,
    folded: Collection[str],
    tags: TagHistory,
    names: Collection[str],
) -> tuple[Mark, ...]:
    """Return the marks of a rule with the tag of now; none if that was split or retired."""
    text = Text(tuple(details["tokens"]), details["ignore_case"], details["endings"])
    if not text.endings and not all(token.casefold() in folded for token in text.tokens):
        return ()
    marked = [Mark(start, end, details["tag"]) for start, end in text.places(sentence.tokens)]
    marks, _ = tags.marks(marked, tags.at_change(details["tag_change"]))
    return tuple(mark for mark in marks if mark.tag in names)
