"""Answers given in one go are taken back in one go."""

from __future__ import annotations

import pytest

from seqmix.errors import NotFoundError
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.batches import add_batch, list_batches, read_batch, undo_batch
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.sentences import read_labeled
from tests.support.stores import LOC, PER, derived, rebuild


def answer_in(store, batch, id, annotator, marks):
    version = answer_version(store, id, annotator)
    return save_answer(store, id, annotator, "label", marks, version=version, batch=batch)


def test_a_batch_keeps_its_cause_and_its_events_say_that_they_belong_to_it(store, anna, bo):
    first = add_batch(store, "mark", anna, {"text": "Lena", "tag": "PER"}, now=5.0)
    second = add_batch(store, "accept", bo, {})
    event = answer_in(store, first, "s:1", anna, [PER])

    assert event.batch == first
    assert [e.batch for e in read_events(store)] == [first]
    assert [batch.id for batch in list_batches(store)] == [second, first]
    batch = read_batch(store, first)
    assert (batch.kind, batch.annotator, batch.at) == ("mark", "anna", 5.0)
    assert batch.details == {"text": "Lena", "tag": "PER"}
    with pytest.raises(NotFoundError):
        read_batch(store, 99)


def test_one_undo_takes_all_of_it_back_and_earlier_answers_count_again(store, anna):
    save_answer(store, "s:1", anna, "label", [LOC])
    save_answer(store, "s:2", anna, "skip")
    before = derived(store)
    batch = add_batch(store, "mark", anna, {})
    for id in ("s:1", "s:2", "s:3"):
        answer_in(store, batch, id, anna, [PER])
    assert len(list(read_labeled(store))) == 3

    undone = undo_batch(store, batch, anna, now=7.0)

    assert (undone.cancelled, undone.changed) == (3, 0)
    assert derived(store) == before
    assert read_batch(store, batch).undone_at == 7.0
    undos = [event for event in read_events(store) if event.kind == "undo"]
    assert {(event.batch, event.at) for event in undos} == {(batch, 7.0)}
    assert {e.sentence_id: (e.spans, e.old) for e in undos} == {
        "s:1": ((LOC,), {"spans": [[0, 1, "PER"]], "sure": None}),
        "s:2": ((), {"spans": [[0, 1, "PER"]], "sure": None}),
        "s:3": ((), {"spans": [[0, 1, "PER"]], "sure": None}),
    }


def test_an_undone_batch_looks_like_undone_answers_to_a_replay(store, anna, bo):
    batch = add_batch(store, "mark", anna, {})
    save_answer(store, "s:4", bo, "label", [])
    for id in ("s:1", "s:2"):
        answer_in(store, batch, id, anna, [PER])
    undo_batch(store, batch, bo)
    replayed = derived(store)

    rebuild(store)

    assert derived(store) == replayed


def test_what_was_corrected_since_stays(store, anna):
    batch = add_batch(store, "mark", anna, {})
    for id in ("s:1", "s:2", "s:3"):
        answer_in(store, batch, id, anna, [PER])
    answer_in(store, None, "s:1", anna, [LOC])
    undo_answer(store, anna, next(e.seq for e in read_events(store) if e.sentence_id == "s:3"))

    undone = undo_batch(store, batch, anna)

    assert (undone.cancelled, undone.changed) == (1, 1)
    assert [(a.sentence_id, a.spans) for a in current_answers(store)] == [("s:1", (LOC,))]


def test_a_batch_is_undone_once_and_gives_nobody_a_sentence(store, anna, bo):
    batch = add_batch(store, "mark", anna, {})
    answer_in(store, batch, "s:1", anna, [PER])
    undo_batch(store, batch, bo, now=7.0)
    before = list(read_events(store))

    again = undo_batch(store, batch, bo, now=9.0)

    assert again.cancelled == 0
    assert list(read_events(store)) == before
    assert read_batch(store, batch).undone_at == 7.0
    assert next_sentence(store, anna) is not None  # not the undone one as if it were open
    assert derived(store)[1][1][1] == "free"
    with pytest.raises(NotFoundError):
        undo_batch(store, 99, anna)


def test_the_part_an_answer_was_sure_of_is_in_its_undo(store, anna):
    batch = add_batch(store, "mark", anna, {})
    save_answer(store, "s:1", anna, "label", [PER], sure=[(0, 2)], batch=batch)

    undo_batch(store, batch, anna)

    *_, undo = read_events(store)
    assert undo.old == {"spans": [[0, 1, "PER"]], "sure": [[0, 2]]}
