"""Tags change while people work, and whoever reads an answer sees the tags of now."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import StaleError, TagError
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.current import current_answers, gold_answers
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import next_sentence, show_sentence
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.records import Generation, Mark, Rank
from seqmix.serve.store.sentences import add_sentences, read_labeled
from seqmix.serve.tags.changes import Wish, change_tags
from seqmix.serve.tags.looks import Look, list_tags
from tests.support.stores import LOC, PER, person, small_store


@pytest.fixture
def store(url):
    with small_store(url) as opened:
        yield opened


@pytest.fixture
def anna(store) -> int:
    return person(store, "anna").id


def answer(store, id, by, *marks, **more):
    version = answer_version(store, id, by)
    return save_answer(store, id, by, "label", marks, version=version, **more)


def now(store, id="s:1"):
    (only,) = current_answers(store, id)
    return [tuple(mark) for mark in only.spans], [tuple(mark) for mark in only.open], only.sure


def tags_of(store, id="s:1"):
    return next(s.tags for s in read_labeled(store) if s.id == id)


def test_a_renamed_tag_is_read_by_its_new_name_and_the_history_keeps_the_old_one(store, anna):
    event = answer(store, "s:1", anna, PER, LOC)

    change = change_tags(store, Wish("rename", "PER", ("Person",)), by=anna, now=5.0)

    assert (change.kind, change.annotator_id, change.at, change.after) == (
        "rename",
        anna,
        5.0,
        event.seq,
    )
    assert store.read_tags() == ("Person", "LOC")
    assert now(store)[0] == [(0, 1, "Person"), (3, 4, "LOC")]
    assert tags_of(store) == ("B-Person", "O", "O", "B-LOC", "O")
    assert [e.spans for e in read_events(store)] == [(PER, LOC)]
    with pytest.raises(TagError, match="unknown tag; this project has Person, LOC"):
        answer(store, "s:2", anna, PER)


def test_tags_are_merged_and_retired(store, anna):
    answer(store, "s:1", anna, PER, LOC)
    change_tags(store, Wish("add", "ORG"))
    answer(store, "s:2", anna, Mark(0, 1, "ORG"), LOC)
    change_tags(store, Wish("merge", "ORG", ("PER",)))
    change_tags(store, Wish("retire", "LOC"))

    assert store.read_tags() == ("PER",)
    assert now(store) == ([(0, 1, "PER")], [], None)
    assert now(store, "s:2") == ([(0, 1, "PER")], [], None)
    assert tags_of(store, "s:2") == ("B-PER", "O", "O", "O", "O")


def test_spans_of_a_split_tag_are_open_and_neither_taught_nor_sure(store, anna):
    answer(store, "s:1", anna, PER, LOC)
    change_tags(store, Wish("split", "LOC", ("LOC", "City")))

    assert store.read_tags() == ("PER", "LOC", "City")
    assert now(store) == (
        [(0, 1, "PER")],
        [(3, 4, "LOC", ("LOC", "City"))],
        ((0, 3), (4, 5)),
    )
    assert tags_of(store) == ("B-PER", "O", "O", None, "O")
    answer(store, "s:1", anna, PER, LOC)  # a person says that it is still LOC
    assert now(store) == ([(0, 1, "PER"), (3, 4, "LOC")], [], None)
    undo_answer(store, anna)
    assert tags_of(store) == ("B-PER", "O", "O", None, "O")


def test_changes_chain_and_a_name_may_come_back_with_another_meaning(store, anna):
    answer(store, "s:1", anna, PER, LOC)
    change_tags(store, Wish("rename", "PER", ("Human",)))
    change_tags(store, Wish("rename", "LOC", ("PER",)))
    answer(store, "s:2", anna, Mark(0, 1, "PER"))
    change_tags(store, Wish("split", "Human", ("Hero", "Crowd")))
    change_tags(store, Wish("merge", "Hero", ("PER",)))
    change_tags(store, Wish("rename", "PER", ("Place",)))

    assert now(store)[:2] == ([(3, 4, "Place")], [(0, 1, "PER", ("Place", "Crowd"))])
    assert now(store, "s:2")[0] == [(0, 1, "Place")]
    change_tags(store, Wish("retire", "Crowd"))
    assert now(store)[1] == [(0, 1, "PER", ("Place", ""))], "it may have been a Crowd: nothing"


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (Wish("rename", "PER", ("LOC",)), "there is a tag LOC already: merge PER into it"),
        (Wish("rename", "PER", ("PER",)), "needs another tag"),
        (Wish("rename", "ORG", ("X",)), "this project has the tags PER, LOC"),
        (Wish("rename", "PER", ("B-PER",)), "without B- and I-"),
        (Wish("merge", "PER", ("ORG",)), "there is no tag ORG: rename PER to it"),
        (Wish("split", "PER", ("A",)), "two tags or more"),
        (Wish("split", "PER", ("A", "A")), "named twice"),
        (Wish("add", "PER"), "named twice"),
        (Wish("add", "O"), "means that nothing is there"),
        (Wish("recolor", "PER", color=12), "a number from 1 to 12"),
        (Wish("undo"), "no change of the tags to take back"),
        (Wish("paint", "PER"), "a change of the tags is one of"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_and_leaves_no_trace(store, wish, message):
    with pytest.raises(TagError, match=message):
        change_tags(store, wish)
    assert store.read_tags() == ("PER", "LOC")
    assert store.tag_history().changes == ()


def test_the_last_tag_stays(store):
    change_tags(store, Wish("retire", "PER"))
    with pytest.raises(TagError, match="at least one tag"):
        change_tags(store, Wish("retire", "LOC"))


def test_of_two_admins_at_once_the_second_looks_again(store):
    change_tags(store, Wish("rename", "PER", ("A",)), newest=0)
    with pytest.raises(StaleError, match="changed meanwhile"):
        change_tags(store, Wish("rename", "A", ("B",)), newest=0)
    change_tags(store, Wish("rename", "A", ("B",)), newest=1)
    assert store.read_tags() == ("B", "LOC")


def test_an_undo_maps_back_what_was_answered_in_between(store, anna):
    answer(store, "s:1", anna, PER, LOC)
    change_tags(store, Wish("merge", "LOC", ("PER",)))
    answer(store, "s:2", anna, PER)
    change_tags(store, Wish("undo"))

    assert store.read_tags() == ("PER", "LOC")
    assert now(store) == ([(0, 1, "PER"), (3, 4, "LOC")], [], None)
    assert now(store, "s:2")[:2] == ([], [(0, 1, "PER", ("PER", "LOC"))])
    with pytest.raises(TagError, match="no change"):
        change_tags(store, Wish("undo"))


def test_the_undo_of_a_split_and_of_an_added_tag(store, anna):
    change_tags(store, Wish("split", "LOC", ("City", "PER")))
    answer(store, "s:1", anna, Mark(0, 1, "PER"), Mark(3, 4, "City"))
    change_tags(store, Wish("undo"))
    assert now(store)[:2] == ([(3, 4, "LOC")], [(0, 1, "PER", ("PER", "LOC"))])
    change_tags(store, Wish("add", "ORG"))
    answer(store, "s:2", anna, Mark(0, 1, "ORG"), LOC)
    change_tags(store, Wish("undo"))
    assert now(store, "s:2") == ([(3, 4, "LOC")], [], None)


def test_nobody_looked_for_a_tag_added_later_or_retired_for_a_while(store, anna):
    answer(store, "s:1", anna, PER)
    change_tags(store, Wish("add", "ORG", earlier="unknown"))
    answer(store, "s:2", anna, PER)
    assert tags_of(store) == ("B-PER", None, None, None, None)
    assert tags_of(store, "s:2") == ("B-PER", "O", "O", "O", "O")
    change_tags(store, Wish("rename", "ORG", ("Firm",)))
    assert gold_answers(store)[0].unasked | gold_answers(store)[1].unasked == {"Firm"}
    change_tags(store, Wish("retire", "Firm"))
    assert tags_of(store) == ("B-PER", "O", "O", "O", "O"), "nobody has to look for it any more"
    answer(store, "s:3", anna, PER)
    change_tags(store, Wish("undo"))
    assert tags_of(store, "s:2") == ("B-PER", "O", "O", "O", "O")
    assert tags_of(store, "s:3") == ("B-PER", None, None, None, None)


def test_colors_and_keys_stay_when_other_tags_come_and_go(store):
    change_tags(store, Wish("add", "ORG"))
    change_tags(store, Wish("recolor", "ORG", color=7))
    change_tags(store, Wish("retire", "PER"))
    assert list_tags(store) == [Look("LOC", 1, 2), Look("ORG", 7, 3)]
    change_tags(store, Wish("split", "LOC", ("City", "River")))
    assert list_tags(store) == [Look("City", 1, 2), Look("River", 0, 1), Look("ORG", 7, 3)]
    change_tags(store, Wish("undo"))
    change_tags(store, Wish("undo"))
    assert list_tags(store) == [Look("PER", 0, 1), Look("LOC", 1, 2), Look("ORG", 7, 3)]


def test_seed_labels_are_read_with_the_tags_of_now_whenever_they_came(store):
    change_tags(store, Wish("rename", "PER", ("LOC2",)))
    tokens = ("Bo", "in", "Rome", "and", "Pisa")
    soft = {"B-LOC": 0.5, "B-LOC2": 0.25, "O": 0.25}
    add_sentences(
        store, [Sentence("seed", tokens, ("B-LOC2", "O", "B-LOC", None, soft))], seed=True
    )
    change_tags(store, Wish("rename", "LOC", ("PER",)))
    assert tags_of(store, "seed") == (
        "B-LOC2",
        "O",
        "B-PER",
        None,
        {"B-PER": 0.5, "B-LOC2": 0.25, "O": 0.25},
    )
    change_tags(store, Wish("merge", "LOC2", ("PER",)))
    assert tags_of(store, "seed")[4] == {"B-PER": 0.75, "O": 0.25}
    change_tags(store, Wish("split", "PER", ("A", "B")))
    assert tags_of(store, "seed") == (None, "O", None, None, None)


def test_a_suggestion_computed_before_a_change_is_shown_with_the_tags_of_now(store, anna):
    spans = [
        {"start": 0, "end": 1, "tag": "PER", "confidence": 0.9},
        {"start": 3, "end": 4, "tag": "LOC", "confidence": 0.8},
    ]
    ranks = [Rank(f"s:{i}", 1.0, {"spans": spans, "confidence": 0.8}) for i in range(10)]
    publish_generation(store, Generation(1, 3), ranks)
    change_tags(store, Wish("rename", "PER", ("Person",)))
    change_tags(store, Wish("split", "LOC", ("City", "River")))
    shown = next_sentence(store, anna)
    assert shown.suggestion["spans"] == [{**spans[0], "tag": "Person"}]
    ranks = [Rank("s:5", 1.0, {"spans": [{**spans[0], "tag": "City"}], "confidence": 0.8})]
    publish_generation(store, Generation(2, 3), ranks)
    change_tags(store, Wish("merge", "City", ("Person",)))
    assert [s["tag"] for s in show_sentence(store, "s:5", anna).suggestion["spans"]] == ["Person"]


def test_an_answer_from_a_page_that_does_not_know_a_change_is_mapped_or_refused(store, anna):
    change_tags(store, Wish("rename", "PER", ("Person",)))
    change_tags(store, Wish("split", "LOC", ("City", "River")))
    event = answer(store, "s:1", anna, PER, tag_change=0)
    assert event.spans == (Mark(0, 1, "Person"),)
    with pytest.raises(TagError, match="the tag LOC is now one of City, River; choose"):
        answer(store, "s:2", anna, LOC, tag_change=1)
    assert [e.sentence_id for e in read_events(store)] == ["s:1"]


def test_an_answer_repeated_after_a_change_is_still_one_event(store, anna):
    first = save_answer(store, "s:1", anna, "label", [PER], tag_change=0)
    change_tags(store, Wish("rename", "PER", ("Person",)))
    assert save_answer(store, "s:1", anna, "label", [PER], tag_change=0).seq == first.seq
