"""A language model as an annotator of its own: it answers a part of the queue.

Its answers are events like those of people, in the stream `source` and in a batch that can be taken
back. A person's answer replaces them. Models learn from them at a weight that the audit chooses.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import and_, func, or_, select

from seqmix.serve.sources.figures import Figures
from seqmix.serve.sources.records import LLM, Source, list_sources, read_settings
from seqmix.serve.sources.stored import AHEAD, stored_marks
from seqmix.serve.store.annotators import MODEL, add_model_annotator, find_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.batches import add_batch, list_batches, undo_batch
from seqmix.serve.store.batches.undo import cancel
from seqmix.serve.store.events import as_event
from seqmix.serve.store.queue import coming_ids
from seqmix.serve.store.records import BULK, Annotator, Event
from seqmix.serve.store.schema import annotators, batches, current, events, queue, suggestions
from seqmix.serve.store.store import Store

KIND, STREAM = "llm", "source"  # of its batches and answers
LEAST = 0.5  # a model of which the F1 may be lower teaches nothing
_AT_ONCE = 10  # answers


def annotator_of(store: Store, source: Source) -> Annotator:
    """Return the annotator that a source is; it cannot log in."""
    name = f"{MODEL}{source.name}"
    with store.writing():
        annotator = find_annotator(store, name)
        return annotator if annotator is not None else add_model_annotator(store, name)


def answer_part(store: Store, source: Source, version: str, share: float) -> int:
    """Answer some of the next sentences that fall to the source; return how many.

    Which these are was drawn at random, so that people see a fair share of what it answers not.
    """
    me = annotator_of(store, source)
    with store.reading() as conn:
        known = (
            select(queue.c.sentence_id)
            .join(suggestions, suggestions.c.sentence_id == queue.c.sentence_id)
            .where(queue.c.sentence_id.in_(coming_ids(conn, AHEAD)))
            .where(queue.c.state == "free", queue.c.chance >= 1 - share)
            .where(suggestions.c.source_id == source.id, suggestions.c.version == version)
            .where(~suggestions.c.spans.contains('"problem"'))
            .where(
                ~select(events.c.seq)
                .where(events.c.sentence_id == queue.c.sentence_id)
                .where(events.c.annotator_id == me.id)
                .exists()
            )
            .limit(_AT_ONCE)
        )
        ids = list(conn.execute(known).scalars())
    if not ids:
        return 0
    batch = _batch(store, source, me)
    for id in ids:
        with store.writing():
            marks = stored_marks(store, id).get(source.id, ())
            save_answer(store, id, me.id, "label", marks, stream=STREAM, batch=batch)
    return len(ids)


def _batch(store: Store, source: Source, me: Annotator) -> int:
    mine = list_batches(store, batches.c.kind == KIND, batches.c.annotator_id == me.id)
    details = {"source": source.name, "model": read_settings(store, source)["model"]}
    for batch in mine:
        if batch.undone_at is None and batch.details == details:
            return batch.id
    return add_batch(store, KIND, me.id, details)


def take_all_back(store: Store, source: Source, by: int) -> int:
    """Take back what a source has answered and nobody has replaced; return how many."""
    me = annotator_of(store, source)
    mine = list_batches(store, batches.c.kind == KIND, batches.c.annotator_id == me.id)
    return sum(undo_batch(store, batch.id, by).cancelled for batch in mine)


def save_over_models(
    store: Store, sentence_id: str, annotator_id: int, *content: Any, **more: Any
) -> Event:
    """Save a person's answer; what a model answered before is taken back, so that theirs counts.

    So is what somebody else accepted of a model, many at a time.
    """
    accepted = and_(events.c.stream == BULK, events.c.annotator_id != annotator_id)
    by_model = or_(annotators.c.name.startswith(MODEL), accepted)
    with store.writing() as conn:
        theirs = (
            select(events)
            .join(current, current.c.seq == events.c.seq)
            .join(annotators, annotators.c.id == events.c.annotator_id)
            .where(current.c.sentence_id == sentence_id, by_model)
        )
        for row in conn.execute(theirs).all() if isinstance(sentence_id, str) else ():
            cancel(store, as_event(row), time.time(), reopen=False)
        return save_answer(store, sentence_id, annotator_id, *content, **more)


def answered_by_models(store: Store) -> dict[str, str]:
    """Return the sentences whose answer that counts is a model's, each with the model's name."""
    gold = (
        select(queue.c.sentence_id, annotators.c.name)
        .join(events, events.c.seq == queue.c.gold)
        .join(annotators, annotators.c.id == events.c.annotator_id)
        .where(annotators.c.name.startswith(MODEL))
    )
    with store.reading() as conn:
        some = select(func.count()).where(annotators.c.name.startswith(MODEL))
        if not conn.execute(some).scalar_one():
            return {}
        return {row.sentence_id: row.name.removeprefix(MODEL) for row in conn.execute(gold)}


def weights(store: Store) -> dict[str, float]:
    """Return how much models learn from each language model's answers: as the audit says.

    It is the lower end of the interval of its F1, and 0 where that is below a half.
    """
    sources = {s.name: s for s in list_sources(store) if s.kind == LLM}
    if not sources:
        return {}
    result = {}
    for row in Figures(store).rows():
        if row["name"] in sources:
            low = 0.0 if row["f1"] is None else float(row["f1"]["low"])
            result[row["name"]] = low if low >= LEAST else 0.0
    return result
