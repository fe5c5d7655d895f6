"""The current answers (after undo and adjudication) and their counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Row, Select, case, func, select

from seqmix.serve.store.annotators import list_annotators
from seqmix.serve.store.batches.bulk import count_bulk
from seqmix.serve.store.events import as_event
from seqmix.serve.store.records import BULK, STREAMS, Answer, Counts, Work, is_key
from seqmix.serve.store.schema import annotators, current, events, queue, sentences
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagHistory, part_without

_BY_MODELS = (
    select(func.count())
    .select_from(queue)
    .join(events, events.c.seq == queue.c.gold)
    .where(events.c.stream == "source")
)
_ANSWERS = select(events, annotators.c.name.label("annotator")).join(
    annotators, annotators.c.id == events.c.annotator_id
)


def current_answers(
    store: Store, sentence_id: str | None = None, overridden: bool = False
) -> list[Answer]:
    """Return adjudications, then each annotator's answer, those who answered first in front.

    Answers to an adjudicated sentence are left out unless `overridden`.
    """
    if sentence_id is not None and not is_key(sentence_id):
        return []
    where = () if sentence_id is None else (events.c.sentence_id == sentence_id,)
    judged = _ANSWERS.join(queue, queue.c.gold == events.c.seq).where(
        events.c.kind == "adjudicate", *where
    )
    by_annotators = _ANSWERS.join(current, current.c.seq == events.c.seq).where(*where)
    with store.reading() as conn:
        tags = store.tag_history()
        decisions = _read(conn, judged.order_by(events.c.seq), tags)
        answers = _read(conn, by_annotators.order_by(current.c.since), tags)
    hidden = set() if overridden else {answer.sentence_id for answer in decisions}
    return decisions + [answer for answer in answers if answer.sentence_id not in hidden]


def gold_answers(store: Store, *streams: str) -> list[Answer]:
    """Return the answer that counts of every answered sentence of some streams, in random order."""
    answers = _ANSWERS.join(queue, queue.c.gold == events.c.seq)
    with store.reading() as conn:
        in_streams = queue.c.stream.in_(streams or STREAMS)
        chosen = answers.where(in_streams).order_by(queue.c.lot)
        return _read(conn, chosen, store.tag_history())


def answered_by_others_only(store: Store, annotator_id: int, ids: Collection[str]) -> set[str]:
    """Return the sentences this annotator may still be asked about and must not see answers to."""
    answers = select(current.c.sentence_id, current.c.annotator_id)
    with store.reading() as conn:
        rows = conn.execute(answers.where(current.c.sentence_id.in_(ids))).all()
    mine = {row.sentence_id for row in rows if row.annotator_id == annotator_id}
    return {row.sentence_id for row in rows} - mine


def read_counts(store: Store, annotator_id: int | None = None) -> Counts:
    """Return how many sentences there are and how many of them are answered."""
    is_label = current.c.kind == "label"
    by_state = (
        select(queue.c.stream, queue.c.state, func.count())
        .where(queue.c.stream.in_(STREAMS), queue.c.state.in_(("held", "done", "discard")))
        .group_by(queue.c.stream, queue.c.state)
    )
    twice = (
        select(current.c.sentence_id)
        .where(is_label)
        .group_by(current.c.sentence_id)
        .having(func.count() > 1)
        .subquery()
    )
    skipped = (
        select(func.count(current.c.sentence_id.distinct()))
        .join_from(current, queue, queue.c.sentence_id == current.c.sentence_id)
        .where(current.c.kind == "skip", queue.c.state.in_(("free", "held")))
    )
    mine = select(func.count()).where(is_label, current.c.annotator_id == annotator_id)
    newest = select(func.coalesce(func.max(events.c.seq), 0))
    with store.reading() as conn:
        pool = store.read_note("pool")
        n: Mapping[tuple[str, str], int] = {
            (stream, state): size for stream, state, size in conn.execute(by_state)
        }
        audit, active = n.get(("audit", "done"), 0), n.get(("active", "done"), 0)
        return Counts(
            sentences=pool or 0,
            labeled=active + audit,
            audit=audit,
            active=active,
            held=n.get(("active", "held"), 0) + n.get(("audit", "held"), 0),
            skipped=int(conn.execute(skipped).scalar_one()),
            discarded=n.get(("active", "discard"), 0) + n.get(("audit", "discard"), 0),
            discarded_audit=n.get(("audit", "discard"), 0),
            overlap=int(conn.execute(select(func.count()).select_from(twice)).scalar_one()),
            seed=n.get(("seed", "done"), 0),
            bulk=count_bulk(conn),
            mine=int(conn.execute(mine).scalar_one()),
            events=int(conn.execute(newest).scalar_one()),
            by_models=int(conn.execute(_BY_MODELS).scalar_one()),
        )


def work_by_annotator(store: Store) -> list[Work]:
    """Return how much each annotator did."""
    what = case((events.c.stream == BULK, BULK), else_=current.c.kind).label("what")
    by_kind = (
        select(current.c.annotator_id, what, func.count())
        .join_from(current, events, events.c.seq == current.c.seq)
        .group_by(current.c.annotator_id, "what")
    )
    time_spent = select(events.c.annotator_id, func.sum(events.c.seconds)).group_by(
        events.c.annotator_id
    )
    with store.reading() as conn:
        n: Mapping[tuple[int, str], int] = {(id, kind): n for id, kind, n in conn.execute(by_kind)}
        seconds: Mapping[int, float] = {id: float(total) for id, total in conn.execute(time_spent)}
        return [
            Work(
                annotator,
                n.get((annotator.id, "label"), 0),
                n.get((annotator.id, BULK), 0),
                n.get((annotator.id, "skip"), 0),
                n.get((annotator.id, "discard"), 0),
                seconds.get(annotator.id, 0.0),
            )
            for annotator in list_annotators(store)
        ]


def _read(conn: Connection, answers: Select[Any], tags: TagHistory) -> list[Answer]:
    return [_answer(conn, row, tags) for row in conn.execute(answers).all()]


def _answer(conn: Connection, row: Row[Any], tags: TagHistory) -> Answer:
    length = select(sentences.c.length).where(sentences.c.id == row.sentence_id)
    return answer_in(row, tags, lambda: int(conn.execute(length).scalar_one()))


def answer_in(row: Row[Any], tags: TagHistory, length: Callable[[], int]) -> Answer:
    """Return an answer with the tags of now, its open spans apart from what is sure.

    `length` gives the tokens of its sentence, which only an answer with open spans needs.
    """
    event, place = as_event(row), tags.at_event(row.seq)
    spans, opened = tags.marks(event.spans, place)
    sure = part_without(event.sure, opened, length()) if opened else event.sure
    return Answer(
        event.seq,
        event.sentence_id,
        event.annotator_id,
        row.annotator,
        event.kind,
        spans,
        sure,
        event.seconds,
        event.at,
        event.stream,
        event.generation,
        tags.unasked(place),
        opened,
    )
