"""What is derived from the events: each annotator's answer of now, and whose turn a sentence is.

The table `current` and the derived columns of `queue` always hold what a replay of the events would
give; they are kept only so that the next sentence can be shown without a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import (
    Connection,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from seqmix.serve.store.records import BULK, Event
from seqmix.serve.store.schema import current, events, leases, queue

ANSWERS = ("label", "skip", "discard")  # the kinds of event that an undo can cancel
DECISION = "adjudicate"  # the kind of an admin's decision, which counts instead of the answers
SETTLING = ("label", "discard")  # of these, those after which nobody else is asked

# Statements are built once: building one takes SQLAlchemy longer than SQLite takes to run it.
_IS_CURRENT = and_(
    current.c.sentence_id == bindparam("sentence"), current.c.annotator_id == bindparam("annotator")
)
_DELETE_CURRENT = delete(current).where(_IS_CURRENT)
_UPDATE_CURRENT = (
    update(current)
    .where(_IS_CURRENT)
    .values({name: bindparam(f"new_{name}") for name in ("seq", "since", "kind")})
)


def _refresh_statement() -> Update:
    of_sentence = current.c.sentence_id == queue.c.sentence_id
    labels = and_(of_sentence, current.c.kind == "label")
    settling = and_(of_sentence, current.c.kind.in_(SETTLING))
    # the first answer counts; that of a sentence first discarded is none
    seq = case((current.c.kind == "label", current.c.seq))
    first = select(seq).where(settling).order_by(current.c.since).limit(1).scalar_subquery()
    discarded = select(current.c.seq).where(of_sentence, current.c.kind == "discard").exists()
    undo = events.alias()
    judged = and_(
        events.c.sentence_id == queue.c.sentence_id,
        events.c.kind == DECISION,
        ~select(undo.c.seq).where(undo.c.undoes == events.c.seq).exists(),
    )
    decided = select(func.max(events.c.seq)).where(judged).scalar_subquery()
    is_open = select(leases.c.at).where(leases.c.sentence_id == queue.c.sentence_id).exists()
    in_bulk = select(events.c.seq).join(current, current.c.seq == events.c.seq)
    by_model = in_bulk.where(of_sentence, events.c.stream == BULK).exists()
    once = select(func.count()).select_from(current).where(labels).scalar_subquery() == 1
    alone = select(func.max(current.c.annotator_id)).where(labels).scalar_subquery()
    gold = func.coalesce(decided, first)
    return update(queue).values(
        gold=gold,
        sole=case(
            (
                and_(
                    queue.c.stream == "active",
                    *(once, ~discarded, decided.is_(None), ~is_open, ~by_model),
                ),
                alone,
            )
        ),
        state=case(
            (or_(queue.c.stream == "seed", gold.is_not(None)), "done"),
            (discarded, "discard"),
            (is_open, "held"),
            else_="free",
        ),
    )


REFRESH_ALL = _refresh_statement()
_REFRESH = REFRESH_ALL.where(queue.c.sentence_id == bindparam("sentence"))


def uncancelled(log: Iterable[Event]) -> list[Event]:
    """Return the answers that no undo has cancelled, of one annotator's events on one sentence.

    label 1, label 2, undo 2 -> label 1
    """
    answers: list[Event] = []
    for event in log:
        if event.kind in ANSWERS:
            answers.append(event)
        elif event.kind == "undo":
            answers = [answer for answer in answers if answer.seq != event.undoes]
    return answers


def refresh(conn: Connection, sentence_id: str) -> None:
    """Derive whose turn a sentence is from its answers and leases."""
    conn.execute(_REFRESH, {"sentence": sentence_id})


def write_current(
    conn: Connection, sentence_id: str, annotator_id: int, answers: Sequence[Event]
) -> None:
    """Keep the last of an annotator's uncancelled answers, and when the first label came."""
    key = {"sentence": sentence_id, "annotator": annotator_id}
    if not answers:
        conn.execute(_DELETE_CURRENT, key)
        return
    since = next((event.seq for event in answers if event.kind == "label"), answers[0].seq)
    new = {"seq": answers[-1].seq, "since": since, "kind": answers[-1].kind}
    changed = conn.execute(_UPDATE_CURRENT, {**key, **{f"new_{n}": v for n, v in new.items()}})
    if changed.rowcount == 0:
        row = {"sentence_id": sentence_id, "annotator_id": annotator_id, **new}
        conn.execute(insert(current), row)
