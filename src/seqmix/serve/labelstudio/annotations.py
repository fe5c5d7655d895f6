"""Which annotations count, saved as answers of the annotator named label-studio."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from seqmix.data.spans import spans
from seqmix.errors import DataError
from seqmix.serve.labelstudio.external import (
    ANNOTATION,
    DELETED,
    LABELED,
    LEFT_OUT,
    NEW,
    SKIPPED,
    TASK,
    is_deleted,
    read_records,
    read_value,
    set_state,
)
from seqmix.serve.labelstudio.labeling import Labeling
from seqmix.serve.labelstudio.tasks import Json, sentence_of
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.queue import assign, give_back
from seqmix.serve.store.records import PAGE, Answer, Mark
from seqmix.serve.store.schema import current, external
from seqmix.serve.store.sentences import paged, retire_sentences
from seqmix.serve.store.store import Store

ANNOTATOR = "label-studio"


class Outcome(NamedTuple):
    """What a task is by its annotations; of those that are labeled the highest rank counts."""

    state: str
    rank: tuple[Any, ...] = ()
    marks: tuple[Mark, ...] = ()


def save_annotations(
    store: Store,
    annotator_id: int,
    labeling: Labeling,
    tasks: Collection[int],
    sentence_ids: Iterable[str] = (),
) -> None:
    """Save what the annotations of some tasks and sentences say now."""
    with store.writing() as conn:
        rows = read_records(conn, TASK, tasks)
        by_sentence: dict[str, list[Outcome]] = {id: [] for id in sentence_ids}
        by_sentence |= {row.sentence_id: [] for row in rows.values() if row.sentence_id is not None}
        is_task = (external.c.kind == TASK) & (external.c.state != DELETED)
        same = select(external).where(is_task, external.c.sentence_id.in_(by_sentence))
        rows |= {row.id: row for row in conn.execute(same)}
        annotations = _annotations(conn, rows)
        for row in rows.values():
            if is_deleted(row):
                continue
            outcome = _outcome(row, annotations[row.id], labeling)
            if outcome.state != row.state:
                set_state(conn, row.id, outcome.state)
            if row.sentence_id is not None:
                by_sentence[row.sentence_id].append(outcome)
        for id, outcomes in by_sentence.items():
            _save(conn, store, annotator_id, id, outcomes)
            if not outcomes and id.startswith(f"{ANNOTATOR}:"):
                _retire(conn, store, id)


def _annotations(conn: Connection, tasks: Collection[int]) -> dict[int, list[Json]]:
    live = select(external).where(external.c.kind == ANNOTATION, external.c.state != DELETED)
    by_task = defaultdict[int, list[Json]](list)
    for page in paged(tasks, PAGE):
        for row in conn.execute(live.where(external.c.parent.in_(page))):
            by_task[row.parent].append(read_value(row))
    return by_task


def _outcome(row: Row[Any], annotations: Sequence[Json], labeling: Labeling) -> Outcome:
    """Take the ground truth, else the last that was not skipped, as in exported files."""
    valid = [
        ((annotation["truth"], annotation["updated"], annotation["id"]), annotation["result"])
        for annotation in annotations
        if not annotation["cancelled"]
    ]
    if not valid:
        return Outcome(SKIPPED if annotations else NEW)
    rank, result = max(valid, key=lambda pair: pair[0])
    try:
        sentence = sentence_of(row.id, read_value(row), labeling, result)
    except DataError:  # the text was changed under its labels
        sentence = None
    if sentence is None or not sentence.tokens:
        return Outcome(LEFT_OUT)
    marked = spans([str(tag) for tag in sentence.tags])
    return Outcome(LABELED, rank, tuple(Mark(span.start, span.end, span.type) for span in marked))


def _save(
    conn: Connection, store: Store, annotator_id: int, id: str, outcomes: Sequence[Outcome]
) -> None:
    answer = _answer(store, annotator_id, id)
    labeled = [outcome for outcome in outcomes if outcome.state == LABELED]
    if labeled or any(outcome.state == SKIPPED for outcome in outcomes):
        kind = "label" if labeled else "skip"
        marks = max(labeled, key=lambda outcome: outcome.rank).marks if labeled else ()
        if answer is None or (answer.kind, answer.spans) != (kind, marks):
            assign(conn, id, annotator_id)
            version = answer_version(store, id, annotator_id)
            save_answer(store, id, annotator_id, kind, marks, version=version)
        return
    while answer is not None:
        undo_answer(store, annotator_id, answer.seq)
        give_back(conn, id, annotator_id)
        answer = _answer(store, annotator_id, id)


def _answer(store: Store, annotator_id: int, id: str) -> Answer | None:
    answers = [a for a in current_answers(store, id, overridden=True) if a.kind != "adjudicate"]
    return next((answer for answer in answers if answer.annotator_id == annotator_id), None)


def _retire(conn: Connection, store: Store, id: str) -> None:
    """Take a sentence that no task has any more out of the project, unless it has an answer."""
    if conn.execute(select(current.c.seq).where(current.c.sentence_id == id)).first() is None:
        retire_sentences(store, [id])
