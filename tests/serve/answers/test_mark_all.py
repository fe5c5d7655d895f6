"""Mark one, mark all: a text is marked in the answers without it and offered in open sentences."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, NotFoundError, TagError
from seqmix.serve.answers.mark_all import MarkedTexts, mark_all, marked_here, take_back
from seqmix.serve.answers.same_text import AT_ONCE, Cause, Text, elsewhere, is_form_of, text_of
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.batches import (
    add_batch,
    batch_sizes,
    last_action,
    list_batches,
    undo_batch,
)
from seqmix.serve.store.batches.bulk import ACCEPT, accept_answers, bulk_ids
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.events import read_events
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import add_sentences, reserve_audit
from seqmix.serve.tags.changes import Wish, change_tags
from seqmix.serve.tags.review import count_open
from tests.support.stores import LOC, PER, derived, find_sentence, rebuild

OSLO = Cause("s:0", 3, 4, "LOC")


def answer(store, id, by, *marks, **more):
    version = answer_version(store, id, by)
    return save_answer(store, id, by, "label", marks, version=version, **more)


def counts(store, by, cause):
    text, _ = text_of(store, cause)
    return elsewhere(store, by, text, cause)


def spans(store, id):
    (only,) = current_answers(store, id)
    return [tuple(mark) for mark in only.spans], only.sure


def test_a_text_is_counted_in_answers_without_it_in_open_sentences_and_where_it_is_marked_otherwise(
    store, anna, bo
):
    answer(store, "s:1", anna, PER)
    answer(store, "s:2", anna, PER, LOC)
    answer(store, "s:3", anna, Mark(2, 4, "PER"))
    answer(store, "s:4", bo, PER)

    there = counts(store, anna, OSLO)

    assert (there.answers, there.otherwise, there.audit, there.open) == (1, 1, 0, 5)
    assert (there.more, there.variants) == (False, {"Oslo": 6})


def test_one_mark_corrects_the_answers_without_it_and_one_undo_takes_all_back(store, anna, bo):
    answer(store, "s:1", anna, PER)
    answer(store, "s:2", anna, PER, LOC)
    answer(store, "s:3", anna, Mark(2, 4, "PER"))
    answer(store, "s:4", anna, PER, sure=[(0, 2)])
    answer(store, "s:5", bo)
    save_answer(store, "s:6", anna, "skip")
    before = derived(store)

    marked = mark_all(store, anna, OSLO)

    assert (marked.answers, marked.more) == (2, False)
    assert spans(store, "s:1") == ([(0, 1, "PER"), (3, 4, "LOC")], None)
    assert spans(store, "s:4") == ([(0, 1, "PER"), (3, 4, "LOC")], ((0, 2), (3, 4)))
    assert spans(store, "s:3")[0] == [(2, 4, "PER")], "marked otherwise: it stays"
    assert spans(store, "s:5")[0] == [], "another annotator's answer stays"
    (batch,) = list_batches(store)
    events = [event for event in read_events(store) if event.batch == batch.id]
    assert [event.sentence_id for event in events] == ["s:1", "s:4"]
    assert events[-1].seq == marked.last
    assert batch.details["sentence_id"] == "s:0"
    assert (batch.details["tokens"], batch.details["tag"]) == (["Oslo"], "LOC")
    assert batch_sizes(store, [batch.id]) == {batch.id: 2}
    replayed = derived(store)
    rebuild(store)
    assert derived(store) == replayed

    assert undo_batch(store, marked.batch, anna).cancelled == 2
    assert derived(store) == before
    assert batch_sizes(store, [batch.id]) == {}


def test_marking_all_again_continues_the_batch_and_a_cancelled_correction_does_not_hide_an_answer(
    store, anna
):
    answer(store, "s:1", anna, PER)
    event = answer(store, "s:1", anna)
    undo_answer(store, anna, event.seq)
    first = mark_all(store, anna, OSLO)
    answer(store, "s:2", anna, PER)
    again = mark_all(store, anna, OSLO)

    assert (first.answers, again.answers, again.batch) == (1, 1, first.batch)
    assert undo_batch(store, first.batch, anna).cancelled == 2
    assert mark_all(store, anna, OSLO).batch != first.batch


def test_the_marks_in_the_sentence_itself_go_with_the_batch_from_an_answer_that_was_saved_later(
    store, anna, bo
):
    add_sentences(store, [Sentence("twice", ("Oslo", "is", "Oslo", "or", "Oslo", "."))])
    cause, places = Cause("twice", 0, 1, "LOC"), [(2, 3), (4, 5), (1, 2), (0, 9)]
    batch = mark_all(store, anna, cause, places).batch
    assert mark_all(store, anna, cause, places).batch == batch
    change_tags(store, Wish("rename", "LOC", ("Place",)))
    first, middle, last = (Mark(at, at + 1, "Place") for at in (0, 2, 4))
    assert marked_here(store, list_batches(store)[0]) == (middle, last)
    answer(store, "twice", anna, first, last)

    assert take_back(store, batch, anna).cancelled == 1
    assert spans(store, "twice")[0] == [first], "one of them had been cleared by hand"
    answer(store, "twice", anna, first, middle, last)
    assert take_back(store, batch, anna).cancelled == 0
    assert spans(store, "twice")[0] == [first, middle, last], "marked again since"


def test_what_was_answered_before_everything_was_marked_stays(store, anna):
    add_sentences(store, [Sentence("twice", ("Oslo", "is", "Oslo"))])
    answer(store, "twice", anna, Mark(0, 1, "LOC"), Mark(2, 3, "LOC"))
    batch = mark_all(store, anna, Cause("twice", 0, 1, "LOC"), [(2, 3)]).batch

    assert take_back(store, batch, anna).cancelled == 0
    assert spans(store, "twice")[0] == [(0, 1, "LOC"), (2, 3, "LOC")]


def test_an_undo_comes_to_a_batch_without_answers_in_its_turn(store, anna, bo):
    before = answer(store, "s:1", bo, PER, now=10.0)
    batch = add_batch(store, "mark_all", bo, {}, now=11.0)
    after = answer(store, "s:2", bo, PER, now=12.0)

    assert last_action(store, anna) is None
    assert last_action(store, bo) == {"seq": after.seq}
    undo_answer(store, bo, after.seq)
    assert last_action(store, bo) == {"batch": batch}
    undo_batch(store, batch, bo)
    assert last_action(store, bo) == {"seq": before.seq}


def test_many_answers_are_corrected_by_several_requests_in_one_batch(store, anna, monkeypatch):
    monkeypatch.setattr("seqmix.serve.answers.mark_all.PER_REQUEST", 4)
    monkeypatch.setattr("seqmix.serve.answers.mark_all.PER_TRANSACTION", 2)
    for i in range(1, 10):
        answer(store, f"s:{i}", anna, PER)

    done = [mark_all(store, anna, OSLO) for _ in range(3)]

    assert [(part.answers, part.more) for part in done] == [(4, True), (4, True), (1, False)]
    assert len({part.batch for part in done}) == 1
    assert undo_batch(store, done[0].batch, anna).cancelled == 9


def test_open_sentences_are_offered_the_mark_until_it_is_taken_back(store, anna, bo):
    texts = MarkedTexts(store)
    sentence = find_sentence(store, "s:7")
    assert texts.marks(sentence) == ()
    lena = mark_all(store, bo, Cause("s:0", 0, 1, "PER"))
    mark_all(store, anna, OSLO)

    assert texts.marks(sentence) == (PER, LOC)
    assert texts.marks(sentence, only=bo) == (PER,)
    change_tags(store, Wish("rename", "PER", ("Human",)))
    assert texts.marks(sentence) == (Mark(0, 1, "Human"), LOC)
    change_tags(store, Wish("split", "LOC", ("City", "River")))
    assert texts.marks(sentence) == (Mark(0, 1, "Human"),), "a person has to choose"
    undo_batch(store, lena.batch, anna)
    assert texts.marks(sentence) == ()


def test_audit_answers_are_counted_and_stay_as_they_are(store, anna):
    reserve_audit(store, 1.0)
    add_sentences(store, [Sentence.from_text("They left Oslo .", "t:1")])
    answer(store, "s:1", anna, PER)

    there = counts(store, anna, OSLO)

    assert (there.answers, there.audit, there.open) == (0, 1, 0)
    assert mark_all(store, anna, OSLO).answers == 0
    assert spans(store, "s:1")[0] == [(0, 1, "PER")]


def test_answers_with_spans_of_a_split_tag_wait_for_a_person(store, anna):
    answer(store, "s:1", anna, PER)
    change_tags(store, Wish("split", "PER", ("Hero", "Crowd")))

    assert counts(store, anna, OSLO).answers == 0
    assert mark_all(store, anna, OSLO).answers == 0
    assert spans(store, "s:1")[1] == ((1, 5),)


def test_one_choice_for_a_span_of_a_split_tag_is_made_for_all_of_its_text(store, anna):
    for i in (0, 1, 2):
        answer(store, f"s:{i}", anna, PER, LOC)
    answer(store, "s:3", anna, Mark(0, 1, "LOC"), LOC)
    change_tags(store, Wish("split", "LOC", ("City", "River")))
    answer(store, "s:0", anna, PER, Mark(3, 4, "City"))
    cause = Cause("s:0", 3, 4, "City")

    assert counts(store, anna, cause).answers == 2
    marked = mark_all(store, anna, cause)

    assert marked.answers == 2
    assert spans(store, "s:1") == ([(0, 1, "PER"), (3, 4, "City")], None)
    assert spans(store, "s:3")[1] is not None, "Lena was marked LOC: that is for a person"
    assert count_open(store) == 1
    undo_batch(store, marked.batch, anna)
    assert count_open(store) == 3


def test_adjudicated_sentences_stay_as_they_were_decided(store, anna):
    answer(store, "s:1", anna, PER)
    version = answer_version(store, "s:1")
    save_answer(store, "s:1", anna, "adjudicate", [], version=version)

    assert mark_all(store, anna, OSLO).answers == 0


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ({}, ["drug"]),
        ({"ignore_case": True}, ["drug", "DRUG"]),
        ({"endings": True}, ["drug", "drugs", "drugged"]),
        ({"ignore_case": True, "endings": True}, ["drug", "DRUG", "drugs", "drugged", "Drugs"]),
    ],
)
def test_case_and_endings_are_options(store, anna, options, written):
    texts = ["a drug b", "a DRUG b", "a drugs b", "a drugged b", "a Drugs b", "druggists", "dr ug"]
    add_sentences(store, [Sentence.from_text(text, f"d:{i}") for i, text in enumerate(texts)])
    cause = Cause("d:0", 1, 2, "LOC", **options)

    there = counts(store, anna, cause)

    assert {*there.variants} == {*written} - {"drug"}
    mark_all(store, anna, cause)
    marked = [
        text
        for i, text in enumerate(texts)
        if MarkedTexts(store).marks(find_sentence(store, f"d:{i}"))
    ]
    assert [text.split()[1] for text in marked] == [
        t.split()[1] for t in texts[:5] if t.split()[1] in written
    ]


def test_texts_of_several_tokens_and_of_any_characters_are_compared_as_they_are(store, anna):
    strange = ("100%", "_", 'a"b', "Élan", "\\")
    add_sentences(store, [Sentence(f"x:{i}", (str(i), *strange, *strange)) for i in range(3)])
    cause = Cause("x:0", 1, 6, "PER", ignore_case=True)
    text, tokens = text_of(store, cause)

    assert text.places(tokens) == [(1, 6), (6, 11)]
    there = counts(store, anna, cause)
    assert (there.open, there.variants) == (2, {" ".join(strange): 4})
    assert Text(("a", "a")).places(["a", "a", "a"]) == [(0, 2)]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("heat", "heated", True),
        ("heat", "heating", True),
        ("Kanzler", "Kanzlers", True),
        ("Ada", "Adam", True),
        ("Ada", "Adele", False),
        ("cat", "catalog", False),
        ("on", "one", True),
        ("a", "an", False),
        ("2019", "2018", False),
    ],
)
def test_a_form_of_a_word_differs_in_a_short_ending(a, b, same):
    assert is_form_of(a, b) is is_form_of(b, a) is same


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        (Cause("s:0", 0, 1, "ORG"), TagError),
        (Cause("nobody", 0, 1, "PER"), NotFoundError),
        (Cause("\0", 0, 1, "PER"), NotFoundError),
        (Cause("s:0", 0, 99, "PER"), DataError),
        (Cause("s:0", 2, 2, "PER"), DataError),
    ],
)
def test_what_cannot_be_marked_is_refused_and_nothing_is_written(store, anna, cause, error):
    with pytest.raises(error):
        mark_all(store, anna, cause)
    assert list_batches(store) == []


def test_what_is_found_at_once_is_limited(store, anna):
    add_sentences(store, (Sentence(f"m:{i}", ("Oslo", str(i))) for i in range(AT_ONCE)))

    there = counts(store, anna, OSLO)

    assert there.more
    assert there.open <= AT_ONCE


def test_answers_in_bulk_that_are_corrected_in_one_go_stay_in_bulk(store, anna):
    batch = add_batch(store, ACCEPT, anna, {})
    accept_answers(store, batch, anna, [("s:1", [PER]), ("s:2", [PER])])

    assert mark_all(store, anna, OSLO).answers == 2
    assert spans(store, "s:1") == ([tuple(PER), tuple(LOC)], None)
    assert bulk_ids(store) == {"s:1", "s:2"}  # nobody has looked at them: no model learns them
    answer(store, "s:1", anna, LOC)
    assert bulk_ids(store) == {"s:2"}
