"""Answers, versions, undo and adjudication: each an event, and what counts follows from it."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, NotFoundError, StaleError, TagError
from seqmix.serve.store.annotators import annotator_by_token, find_annotator
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.current import current_answers, gold_answers, read_counts
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import Rules, next_sentence
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import (
    add_sentences,
    read_audit_sentences,
    read_labeled,
    read_sentences,
)
from tests.support.stores import LOC, PER, find_sentence, person, small_store, unlabeled


def test_an_answer_is_an_event_with_who_when_how_long_and_what_was_there_before(store, anna):
    first = save_answer(store, "s:1", anna, "label", [LOC, PER], seconds=2.5, now=100.0)
    second = save_answer(
        store, "s:1", anna, "label", [PER], seconds=1.0, version=first.seq, now=200.0
    )

    assert (first.sentence_id, first.annotator_id, first.kind, first.spans) == (
        "s:1",
        anna,
        "label",
        (PER, LOC),
    )
    assert (first.seconds, first.at, first.old, first.stream) == (2.5, 100.0, None, "active")
    assert second.old == {"spans": [[0, 1, "PER"], [3, 4, "LOC"]], "sure": None}
    assert list(read_events(store)) == [first, second]
    assert list(read_events(store, after=first.seq)) == [second]


def test_the_current_answer_is_the_last_one(store, anna):
    first = save_answer(store, "s:1", anna, "label", [PER, LOC])
    save_answer(store, "s:1", anna, "label", [LOC], version=first.seq)

    (answer,) = current_answers(store)
    assert (answer.annotator, answer.kind, answer.spans) == ("anna", "label", (LOC,))
    assert current_answers(store, "s:1") == [answer]
    assert current_answers(store, "s:2") == []


def test_labeled_sentences_come_in_bio_in_the_order_of_the_text(store, anna, bo):
    save_answer(store, "s:3", bo, "label", [Mark(0, 2, "PER")])
    save_answer(store, "s:1", anna, "label", [])

    one, three = read_labeled(store)
    assert (one.id, one.tags) == ("s:1", ("O",) * 5)
    assert (three.id, three.tags) == ("s:3", ("B-PER", "I-PER", "O", "O", "O"))
    assert three.text == "Lena 3 left Oslo ."
    assert [s.labeled for s in read_labeled(store, unlabeled=True)] == [
        i in (1, 3) for i in range(10)
    ]
    assert [s.id for s in unlabeled(store)] == [f"s:{i}" for i in range(10) if i not in (1, 3)]


def test_rows_outside_the_sure_part_are_missing(store, anna):
    save_answer(store, "s:1", anna, "label", [PER], sure=[(0, 2), (1, 3)])

    assert next(read_labeled(store)).tags == ("B-PER", "O", "O", None, None)
    assert current_answers(store)[0].sure == ((0, 3),)


def test_who_marks_a_span_is_sure_of_it_and_all_sure_parts_together_may_be_everything(store, anna):
    one = save_answer(store, "s:1", anna, "label", [PER, LOC], sure=[(1, 2)])
    all_of_it = save_answer(store, "s:2", anna, "label", [], sure=[(0, 3), (3, 5)])

    assert one.sure == ((0, 2), (3, 4))
    assert all_of_it.sure is None


def test_a_skip_labels_nothing(store, anna):
    event = save_answer(store, "s:1", anna, "skip", [PER], seconds=1)

    assert event.spans == ()
    assert list(read_labeled(store)) == []
    assert read_counts(store, anna).skipped == 1


def test_a_discarded_sentence_is_no_label_and_asked_of_nobody_until_it_is_undone(url):
    with small_store(url, 4, ("anna", "bo"), audit=0.5) as store:
        anna, bo = (person(store, name).id for name in ("anna", "bo"))
        audit = read_audit_sentences(store)[0].id
        event = save_answer(store, audit, anna, "discard", [PER], seconds=1)
        counts = read_counts(store)

        assert (event.spans, counts.left, counts.labeled) == ((), 3, 0)
        assert (counts.discarded, counts.discarded_audit) == (1, 1)
        assert list(read_labeled(store)) == [] == gold_answers(store, "audit")
        assert audit not in {sentence.id for sentence in read_sentences(store)}
        asked = set()
        while (shown := next_sentence(store, bo, Rules(0.5, 1.0))) is not None:
            asked.add(shown.sentence.id)
            save_answer(store, shown.sentence.id, bo, "label", version=shown.version)
        assert len(asked) == 3 and audit not in asked
        with pytest.raises(StaleError, match="another annotator has discarded this"):
            save_answer(store, audit, bo, "label")

        undo_answer(store, anna, event.seq)
        counts = read_counts(store)
        assert (counts.discarded, counts.left, counts.held) == (0, 1, 1)
        assert next_sentence(store, anna).sentence.id == audit


def test_a_sentence_of_somebody_else_is_refused_with_the_reason(store, anna, bo):
    held = next_sentence(store, anna).sentence.id
    with pytest.raises(StaleError, match="another annotator has this sentence open"):
        save_answer(store, held, bo, "label")
    save_answer(store, held, anna, "label", [PER])
    with pytest.raises(StaleError, match="another annotator has answered this sentence; an admin"):
        save_answer(store, held, bo, "label", [LOC])
    add_sentences(store, [Sentence("seed", ("Ada",), ("B-PER",))], seed=True)
    with pytest.raises(StaleError, match="was labeled before the project"):
        save_answer(store, "seed", bo, "label")


def test_a_label_may_be_discarded_later_and_a_discarded_sentence_labeled_after_all(store, anna):
    save_answer(store, "s:1", anna, "label", [PER])
    bad = save_answer(store, "s:1", anna, "discard", version=answer_version(store, "s:1"))
    assert list(read_labeled(store)) == []

    save_answer(store, "s:1", anna, "label", [LOC], version=bad.seq)
    assert [s.tags[3] for s in read_labeled(store)] == ["B-LOC"]
    assert read_counts(store).discarded == 0


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ([Mark(0, 6, "PER")], "inside its sentence of 5 tokens; found '0 to 6'"),
        ([Mark(-1, 2, "PER")], "inside its sentence"),
        ([Mark(2, 2, "PER")], "inside its sentence"),
        ([Mark(3, 2, "PER")], "inside its sentence"),
        ([Mark(True, 2, "PER")], "inside its sentence"),
        ([Mark(0, 10**30, "PER")], "inside its sentence"),
        ([Mark(0, 2, "PER"), Mark(1, 3, "LOC")], "must not overlap"),
        ([PER, PER], "must not overlap"),
        ([Mark(0, 1, "ORG")], "unknown tag; this project has PER, LOC; found 'ORG'"),
        ([Mark(0, 1, "O")], "unknown tag"),
        ([Mark(0, 1, "\ud800")], "unknown tag"),
        ([(0, 1)], "a start, an end and a tag"),
    ],
)
def test_a_wrong_span_is_refused_and_nothing_is_saved(store, anna, marks, message):
    with pytest.raises(TagError, match=message):
        save_answer(store, "s:1", anna, "label", marks)

    assert list(read_events(store)) == []


@pytest.mark.parametrize("sure", [[], [(0, 6)], [(2, 2)], [(0, 1, 2)], [(-1, 2)], [3]])
def test_a_wrong_sure_part_is_refused(store, anna, sure):
    with pytest.raises(DataError, match="sure"):
        save_answer(store, "s:1", anna, "label", [], sure=sure)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "3"])
def test_seconds_are_a_number(store, anna, seconds):
    with pytest.raises(DataError, match="seconds"):
        save_answer(store, "s:1", anna, "label", [], seconds=seconds)


def test_a_page_left_open_for_a_year_counts_as_four_months(store, anna):
    assert save_answer(store, "s:1", anna, "label", [PER], seconds=3e7).seconds == 1e7
    assert save_answer(store, "s:2", anna, "label", [PER], seconds=5).seconds == 5.0


def test_an_unknown_sentence_annotator_or_kind_is_refused(store, anna):
    for id in ("s:99", "", "a\0b", "\ud800", "x" * 5000):
        with pytest.raises(NotFoundError, match="there is no sentence"):
            save_answer(store, id, anna, "label", [])
    with pytest.raises(NotFoundError, match="there is no annotator '99'"):
        save_answer(store, "s:1", 99, "label", [])
    with pytest.raises(DataError, match="label, skip, discard or adjudicate"):
        save_answer(store, "s:1", anna, "undo", [])
    assert list(read_events(store)) == []


def test_looking_for_what_no_database_can_hold_finds_nothing(store, anna):
    for id in ("s:99", "", "a\0b", "\ud800"):
        assert find_sentence(store, id) is None
        assert answer_version(store, id, anna) == 0
        assert current_answers(store, id) == []
        assert find_annotator(store, id) is None
        assert annotator_by_token(store, id) is None
    assert [s.id for s in read_sentences(store, ["s:2", "a\0b", "s:1", "nowhere"])] == [
        "s:2",
        "s:1",
    ]


def test_an_answer_to_an_older_version_is_stale_and_says_which_is_current(store, anna):
    event = save_answer(store, "s:1", anna, "label", [PER])
    for version in (0, event.seq + 1, -1, 10**30):
        with pytest.raises(StaleError) as error:
            save_answer(store, "s:1", anna, "label", [LOC], version=version)
        assert error.value.version == event.seq == answer_version(store, "s:1", anna)

    assert current_answers(store)[0].spans == (PER,)


def test_an_answer_to_a_version_that_never_was_says_that_there_is_none_yet(store, anna):
    with pytest.raises(StaleError) as error:
        save_answer(store, "s:1", anna, "label", [PER], version=7)

    assert error.value.version == 0 == answer_version(store, "s:1", anna)


def test_the_same_answer_sent_again_after_a_broken_line_is_one_event(store, anna):
    first = save_answer(store, "s:1", anna, "label", [PER], sure=[(0, 2)])

    assert save_answer(store, "s:1", anna, "label", [PER], sure=[(0, 2)]) == first
    with pytest.raises(StaleError):
        save_answer(store, "s:1", anna, "label", [PER])
    assert len(list(read_events(store))) == 1


def test_a_sentence_somebody_else_has_open_or_answered_is_not_mine(store, anna, bo):
    open_one = next_sentence(store, anna).sentence.id
    with pytest.raises(StaleError, match="another annotator"):
        save_answer(store, open_one, bo, "label", [])
    save_answer(store, open_one, anna, "label", [PER])
    with pytest.raises(StaleError, match="another annotator"):
        save_answer(store, open_one, bo, "skip")

    assert [answer.annotator for answer in current_answers(store)] == ["anna"]


def test_versions_of_two_annotators_do_not_meet(store, anna, bo):
    mine = save_answer(store, "s:1", anna, "label", [PER])
    theirs = save_answer(store, "s:2", bo, "label", [PER])

    assert answer_version(store, "s:1", anna) == mine.seq
    assert answer_version(store, "s:1", bo) == 0
    assert answer_version(store, "s:2") == theirs.seq


def test_an_adjudication_overrides_and_the_answers_stay(store, anna, bo):
    save_answer(store, "s:1", anna, "label", [PER])
    with pytest.raises(StaleError):
        save_answer(store, "s:1", anna, "adjudicate", [LOC], version=0)
    decided = save_answer(
        store, "s:1", anna, "adjudicate", [LOC], version=answer_version(store, "s:1")
    )

    assert [answer.kind for answer in current_answers(store, "s:1")] == ["adjudicate"]
    assert [answer.kind for answer in current_answers(store, "s:1", overridden=True)] == [
        "adjudicate",
        "label",
    ]
    assert next(read_labeled(store)).tags[3] == "B-LOC"
    save_answer(
        store, "s:1", anna, "label", [], version=answer_version(store, "s:1", anna)
    )  # one's own answer may still be changed
    assert next(read_labeled(store)).tags[3] == "B-LOC"
    again = save_answer(store, "s:1", bo, "adjudicate", [], version=answer_version(store, "s:1"))
    assert again.seq > decided.seq
    assert next(read_labeled(store)).tags == ("O",) * 5
