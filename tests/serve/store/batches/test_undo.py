"""An undo is an event, and takes back one answer at a time."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from seqmix.errors import NotFoundError, StaleError
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.undo import last_answer, undo_answer
from seqmix.serve.store.current import current_answers, gold_answers
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.schema import leases
from seqmix.serve.store.sentences import read_labeled
from tests.support.stores import LOC, PER, rebuild


def test_an_undo_is_an_event_and_the_sentence_is_mine_again(store, anna, bo):
    event = save_answer(store, "s:1", anna, "label", [PER], now=1000.0)
    undone = undo_answer(store, anna, now=1001.0)

    assert (undone.kind, undone.undoes, undone.sentence_id) == ("undo", event.seq, "s:1")
    assert list(read_events(store)) == [event, undone]
    assert current_answers(store) == []
    assert next_sentence(store, anna, now=1002.0).sentence.id == "s:1"
    assert next_sentence(store, bo, now=1002.0).sentence.id != "s:1"
    again = save_answer(
        store, "s:1", anna, "label", [LOC], version=answer_version(store, "s:1", anna)
    )
    assert current_answers(store)[0].seq == again.seq


def test_undo_goes_back_one_answer_at_a_time_and_never_redoes(store, anna):
    for i in range(3):
        save_answer(store, f"s:{i}", anna, "skip" if i == 1 else "label", [])

    assert [undo_answer(store, anna).sentence_id for _ in range(3)] == ["s:2", "s:1", "s:0"]
    assert undo_answer(store, anna) is None
    assert current_answers(store) == []
    assert len(list(read_events(store))) == 6


def test_an_undo_after_an_undo_and_a_new_answer_takes_back_the_new_answer_first(store, anna):
    save_answer(store, "s:0", anna, "label", [])
    save_answer(store, "s:1", anna, "label", [])
    undo_answer(store, anna)
    save_answer(store, "s:2", anna, "label", [])

    assert [undo_answer(store, anna).sentence_id for _ in range(2)] == ["s:2", "s:0"]
    assert undo_answer(store, anna) is None


def test_the_undo_of_a_correction_gives_the_first_answer_back(store, anna):
    first = save_answer(store, "s:1", anna, "label", [PER])
    second = save_answer(store, "s:1", anna, "label", [LOC], version=first.seq)
    undone = undo_answer(store, anna)

    assert undone.undoes == second.seq
    assert undone.spans == (PER,)
    assert current_answers(store)[0].spans == (PER,)
    assert undo_answer(store, anna).undoes == first.seq


def test_the_same_undo_twice_is_one(store, anna):
    first, second = (save_answer(store, f"s:{i}", anna, "label", [PER]) for i in (0, 1))
    assert last_answer(store, anna) == second.seq
    undone = undo_answer(store, anna, second.seq)

    assert (
        undo_answer(store, anna, second.seq) == undone
    )  # its reply was lost, and it is sent again
    assert [answer.sentence_id for answer in current_answers(store)] == ["s:0"]
    assert last_answer(store, anna) == first.seq
    assert undo_answer(store, anna, first.seq).sentence_id == "s:0"
    assert last_answer(store, anna) is None


def test_an_undo_names_an_answer_of_mine_that_stands(store, anna, bo):
    first = save_answer(store, "s:1", anna, "label", [PER])
    other = save_answer(store, "s:2", anna, "label", [PER])
    second = save_answer(store, "s:1", anna, "label", [LOC], version=first.seq)
    for seq, who, error in (
        (first.seq, anna, StaleError),
        (second.seq, bo, NotFoundError),
        (10**9, anna, NotFoundError),
    ):
        with pytest.raises(error):
            undo_answer(store, who, seq)

    assert (
        undo_answer(store, anna, other.seq).sentence_id == "s:2"
    )  # by name, whatever was answered since
    assert len(list(read_events(store))) == 4


def test_who_came_first_counts_also_after_correcting_it(store, anna, bo):
    mine = save_answer(store, "s:1", anna, "label", [PER])
    with store.writing() as conn:
        conn.execute(
            insert(leases).values(sentence_id="s:1", annotator_id=bo, stream="overlap", at=1.0)
        )
    save_answer(store, "s:1", bo, "label", [LOC])
    save_answer(store, "s:1", anna, "label", [PER, LOC], version=mine.seq)

    assert [(answer.annotator_id, answer.spans) for answer in gold_answers(store)] == [
        (anna, (PER, LOC))
    ]
    (labeled,) = read_labeled(store)
    assert labeled.tags == ("B-PER", "O", "O", "B-LOC", "O")


def test_nobody_undoes_what_another_said(store, anna, bo):
    save_answer(store, "s:1", anna, "label", [PER])

    assert undo_answer(store, bo) is None
    assert len(current_answers(store)) == 1


def test_the_undo_of_a_decision_lets_the_answers_count_again(store, anna, bo):
    answer = save_answer(store, "s:1", anna, "label", [PER])
    first = save_answer(store, "s:1", bo, "adjudicate", [LOC], version=answer.seq)
    second = save_answer(store, "s:1", bo, "adjudicate", [], version=first.seq)

    with pytest.raises(StaleError, match="decided again"):
        undo_answer(store, bo, first.seq)
    with pytest.raises(NotFoundError):
        undo_answer(store, anna, second.seq)
    undone = undo_answer(store, bo, second.seq)
    assert (undone.kind, undone.undoes) == ("undo", second.seq)
    assert undo_answer(store, bo, second.seq) == undone
    assert [a.seq for a in current_answers(store)] == [first.seq]
    undo_answer(store, bo, first.seq)
    assert [a.seq for a in gold_answers(store)] == [answer.seq]
    assert undo_answer(store, bo) is None  # a decision is taken back by its seq only
    rebuild(store)
    assert [a.seq for a in gold_answers(store)] == [answer.seq]
    again = save_answer(store, "s:1", bo, "adjudicate", [LOC], version=undone.seq + 1)
    assert [a.seq for a in current_answers(store)] == [again.seq]
