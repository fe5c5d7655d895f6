"""Looking answers up: what matches, in which order, page by page, in both databases."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.serve.answers.search import Wanted, search
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.records import Mark
from seqmix.serve.store.schema import comments, events, sentences
from seqmix.serve.store.sentences import add_sentences, read_audit_sentences
from seqmix.serve.tags.changes import Wish, change_tags
from tests.support.stores import LOC, PER, rebuild, small_store


def label(store, who, id, *marks, **more):
    return save_answer(store, id, who, "label", marks, **more)


def ids(store, **wanted):
    entries, _ = search(store, Wanted(**wanted))
    return [entry.sentence.id for entry in entries]


def test_answers_come_newest_first_and_open_sentences_in_the_order_of_the_text(store, anna, bo):
    label(store, anna, "s:4", PER)
    label(store, bo, "s:1", LOC)

    assert ids(store) == ["s:1", "s:4"]
    assert ids(store, state="open") == [f"s:{i}" for i in (0, 2, 3, 5, 6, 7, 8, 9)]
    assert [(entry.answer.annotator, entry.counts) for entry in search(store, Wanted())[0]] == [
        ("bo", True),
        ("anna", True),
    ]


def test_only_the_answer_that_stands_now_is_listed(store, anna):
    first = label(store, anna, "s:0", PER)
    second = label(store, anna, "s:0", LOC, version=first.seq)
    assert [entry.answer.seq for entry in search(store, Wanted())[0]] == [second.seq]

    undo_answer(store, anna)
    assert [entry.answer.seq for entry in search(store, Wanted())[0]] == [first.seq]
    judged = save_answer(store, "s:0", anna, "adjudicate", [LOC], version=second.seq + 1)
    assert [(e.answer.kind, e.counts) for e in search(store, Wanted())[0]] == [
        ("adjudicate", True),
        ("label", False),
    ]
    assert search(store, Wanted())[0][0].answer.seq == judged.seq


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_pages_hold_everything_once(store, anna, size):
    for i in range(7):
        label(store, anna, f"s:{i}", PER)
    for wanted in (Wanted(), Wanted(text="lena"), Wanted(state="open")):
        pages, after = [], None
        while True:
            entries, after = search(store, wanted, after, size)
            pages += [entry.sentence.id for entry in entries]
            if after is None:
                break
        assert pages == ids(store, **vars(wanted))
        assert len(pages) == (3 if wanted.state == "open" else 7)


def test_text_is_searched_in_any_case_and_script_over_tokens(store):
    add_sentences(
        store,
        [
            Sentence("plain", ("Café", "ÉCLAIR", "100%", "a_b", 'say "x"', "\\d")),
            Sentence.from_text("Straße nach  Łódź, don't", "raw"),
            Sentence("russian", ("Москва", "\U0001f600", "东京")),
        ],
    )
    assert ids(store, state="open", text="CAFÉ  éclair") == ["plain"]
    assert ids(store, state="open", text="straße NACH łódź") == ["raw"]
    assert ids(store, state="open", text="DON'T") == ["raw"]
    assert ids(store, state="open", text="МОСК") == ["russian"]
    assert ids(store, state="open", text="\U0001f600 东") == ["russian"]
    for text in ("100%", "a_b", 'SAY "x', "\\D"):
        assert ids(store, state="open", text=text) == ["plain"]
    for text in ("100_", "a%b", "aéb", "caf clair"):
        assert ids(store, state="open", text=text) == []


def test_filters_by_tag_person_stream_date_and_comment(store, anna, bo):
    label(store, anna, "s:0", PER, now=100.0)
    label(store, bo, "s:1", LOC, now=200.0, stream="audit")
    save_answer(store, "s:2", bo, "skip", now=300.0)
    with store.writing() as conn:
        conn.execute(
            comments.insert(), {"sentence_id": "s:1", "annotator_id": anna, "at": 1.0, "text": ""}
        )
    assert ids(store, tag="PER") == ["s:0"]
    assert ids(store, tag="PE") == ids(store, tag="P%R") == []
    assert ids(store, annotator="bo") == ["s:1"]
    assert ids(store, annotator="nobody") == []
    assert ids(store, stream="audit") == ["s:1"]
    assert ids(store, since=150.0) == ["s:1"]
    assert ids(store, until=150.0) == ["s:0"]
    assert ids(store, state="skipped") == ["s:2"]
    assert ids(store, commented=True) == ["s:1"]
    assert ids(store, id="s:1") == ["s:1"]
    assert ids(store, id="s:\0") == []


def test_filters_by_source_and_batch(store, anna):
    seen = label(store, anna, "s:0", PER)
    batch = add_batch(store, "mark_all", anna, {})
    label(store, anna, "s:1", PER, batch=batch)
    with store.writing() as conn:  # a copy of the event: events never change
        values = dict(
            conn.execute(events.select().where(events.c.seq == seen.seq)).mappings().one()
        )
        values.update(seq=None, sentence_id="s:2", shown='{"dictionary":[2,1]}')
        del values["seq"]
        conn.execute(events.insert(), values)
    rebuild(store)
    assert ids(store, source="dictionary") == ["s:2"]
    assert ids(store, source="mark_all") == ["s:1"]
    assert search(store, Wanted(source="mark_all"))[0][0].batch == (batch, "mark_all")
    assert search(store, Wanted(source="dictionary"))[0][0].shown == {"dictionary": [2, 1]}


def test_answers_from_before_a_tag_existed(store, anna):
    label(store, anna, "s:0", PER)
    change_tags(store, Wish("add", "Event", earlier="unknown"))
    label(store, anna, "s:1", PER)

    assert ids(store, before_tag="Event") == ["s:0"]
    assert ids(store, before_tag="PER") == []


def test_answers_are_listed_and_filtered_with_the_tags_of_now(store, anna):
    label(store, anna, "s:0", PER, LOC)
    change_tags(store, Wish("rename", "PER", ("Human",)))
    change_tags(store, Wish("add", "Event", earlier="unknown"))
    change_tags(store, Wish("rename", "Event", ("Party",)))
    change_tags(store, Wish("rename", "LOC", ("PER",)))
    label(store, anna, "s:1", Mark(0, 1, "PER"))

    assert ids(store, tag="Human") == ["s:0"]
    assert ids(store, tag="PER") == ["s:1", "s:0"]
    assert ids(store, tag="LOC") == []
    assert ids(store, before_tag="Party") == ["s:0"]
    _, first = search(store, Wanted())[0]
    assert first.answer.spans == (Mark(0, 1, "Human"), Mark(3, 4, "PER"))
    change_tags(store, Wish("split", "Human", ("Hero", "Crowd")))
    assert ids(store, tag="Crowd") == ["s:0"]
    _, first = search(store, Wanted())[0]
    assert first.answer.spans == (Mark(3, 4, "PER"),)
    assert [mark.choices for mark in first.answer.open] == [("Hero", "Crowd")]


def test_a_blind_reader_sees_no_answers_of_others(store, anna, bo):
    label(store, anna, "s:0", PER)
    label(store, bo, "s:1", LOC)

    entries, _ = search(store, Wanted(), reader=bo)
    assert [entry.sentence.id for entry in entries] == ["s:1"]


def test_audit_sentences_are_not_listed_before_it_is_their_turn(url):
    with small_store(url, audit=0.3) as store:
        listed = ids(store, state="open")
        assert len(listed) == 7
        audit = {sentence.id for sentence in read_audit_sentences(store)}
        assert len(audit) == 3
        assert audit.isdisjoint(listed)


def test_sentences_that_were_labeled_before_are_a_list_of_their_own(store):
    seed = Sentence("seed", ("Ada", "left"), ("B-PER", "O"))
    soft = Sentence("soft", ("Bo", "saw", "Rome"), ({"B-PER": 0.9, "O": 0.1}, "O", None))
    add_sentences(store, [seed, soft], seed=True)

    assert ids(store, state="seed") == ["seed", "soft"]
    assert [entry.seed for entry in search(store, Wanted("seed"))[0]] == [
        ((Mark(0, 1, "PER"),), None),
        ((Mark(0, 1, "PER"),), ((0, 2),)),
    ]
    assert ids(store, state="seed", tag="LOC") == []
    change_tags(store, Wish("rename", "PER", ("Person",)))
    assert ids(store, state="seed", tag="Person") == ["seed", "soft"]
    assert "seed" not in ids(store, state="open")
    with store.reading() as conn:
        assert conn.execute(sentences.select().where(sentences.c.id == "seed")).one().seed
