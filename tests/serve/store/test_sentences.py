"""Sentences come back as they were added."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, StaleError, TagError
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.records import Mark
from seqmix.serve.store.schema import sentences
from seqmix.serve.store.sentences import (
    add_sentences,
    read_audit_sentences,
    read_labeled,
    read_sentences,
    reserve_audit,
)
from seqmix.serve.store.store import create_store
from tests.support.postgres import wipe
from tests.support.stores import TAGS, count_sentences, find_sentence, person, unlabeled

STRANGE = {
    "nul": "a\0b c",
    "half a pair": "x\ud800 y",
    "emoji": "👩\u200d👩\u200d👧 flag 🇳🇴 done",
    "right to left": "\u202eשלום עולם\u202c مرحبا",
    "html": "<script>alert('x')</script> & \"y\"",
    "cjk": "東京都に住む",
    "a megabyte": "lorem " * 180_000,
    "control": "a\x01\x1b[31m b\u2028c",
}


@pytest.mark.parametrize("kind", STRANGE)
def test_text_comes_back_as_it_was(url, kind):
    sentence = Sentence.from_text(STRANGE[kind], "s")
    with create_store(url, TAGS) as store:
        add_sentences(store, [sentence])
        add_annotator(store, "anna")
        save_answer(store, "s", person(store, "anna").id, "label", [Mark(0, 1, "PER")])

        assert find_sentence(store, "s") == sentence
        assert next(read_labeled(store)).unlabeled() == sentence


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.lists(st.text(st.characters(), min_size=1), min_size=1, max_size=4), max_size=6))
def test_any_tokens_come_back_or_are_refused_in_one_line(url, texts):
    wipe(url)
    given = [Sentence(f"s:{i}", tuple(tokens)) for i, tokens in enumerate(texts)]
    with create_store(url, TAGS) as store:
        try:
            added = add_sentences(store, given)
        except DataError as error:
            assert "surrogate" in str(error)
            return
        assert added.new == len({s.tokens for s in given})
        assert {s.tokens for s in read_sentences(store)} == {s.tokens for s in given}


def test_two_halves_of_a_pair_side_by_side_are_refused_since_they_would_come_back_as_one(url):
    with create_store(url, TAGS) as store, pytest.raises(DataError, match="surrogate"):
        add_sentences(store, [Sentence("s", ("\ud83d\ude00",))])


def test_equal_tokens_are_stored_once_and_counted(url):
    with create_store(url, TAGS) as store:
        first = add_sentences(
            store,
            [
                Sentence.from_text("Hi there", "a"),
                Sentence.from_text("Hi  there", "b"),
                Sentence.from_text(" ", "c"),
                Sentence.from_text("Ho", "d"),
            ],
        )
        again = add_sentences(
            store, [Sentence.from_text("Ho", "e"), Sentence.from_text("Hey", "f")]
        )

        assert (first.new, first.duplicates, first.empty) == (2, 1, 1)
        assert (again.new, again.duplicates, again.empty) == (1, 1, 0)
        assert [s.id for s in read_sentences(store)] == ["a", "d", "f"]


@pytest.mark.parametrize("id", ["s:1", "", "a\0b", "\ud800", "x" * 1001])
def test_an_id_that_is_taken_or_cannot_be_looked_up_is_refused(store, id):
    with pytest.raises(DataError, match="id"):
        add_sentences(
            store, [Sentence.from_text("One two", "new"), Sentence.from_text("Three four", id)]
        )

    assert count_sentences(store) == 10


def test_seed_labels_are_kept_soft_and_missing_ones_too_and_are_not_asked_for(url):
    seed = Sentence("a", ("Lena", "left", "Oslo"), ("B-PER", None, {"B-LOC": 0.75, "O": 0.25}))
    with create_store(url, TAGS) as store:
        add_sentences(store, [seed, Sentence.from_text("Who else", "b")], seed=True)
        add_annotator(store, "anna")

        assert list(read_labeled(store)) == list(read_labeled(store, "seed")) == [seed]
        assert [s.id for s in unlabeled(store)] == ["b"]
        assert next_sentence(store, 1).sentence.id == "b"
        assert (read_counts(store).seed, read_counts(store).sentences, read_counts(store).left) == (
            1,
            1,
            1,
        )
        with pytest.raises(StaleError):
            save_answer(store, "a", 1, "label", [])


def test_the_audit_sample_leaves_the_seed_alone(url):
    with create_store(url, TAGS) as store:
        add_sentences(
            store, (Sentence(f"seed{i}", ("a", str(i)), ("O", "O")) for i in range(5)), seed=True
        )
        add_sentences(store, (Sentence.from_text(f"Number {i}", f"s{i}") for i in range(4)))

        assert reserve_audit(store, 1.0) == 4 == len(read_audit_sentences(store))
        assert read_counts(store).seed == 5 == len(list(read_labeled(store, "seed")))


@pytest.mark.parametrize("tag", ["B-ORG", "NOUN", "E-PER", "B-"])
def test_seed_labels_with_other_tags_are_refused(url, tag):
    with (
        create_store(url, TAGS) as store,
        pytest.raises(TagError, match="sentence 'a' has a label"),
    ):
        add_sentences(store, [Sentence("a", ("Lena",), (tag,))], seed=True)


def test_many_sentences_stream_in_and_out(url):
    with create_store(url, TAGS) as store:
        assert (
            add_sentences(
                store, (Sentence.from_text(f"Number {i}", f"s:{i}") for i in range(1201))
            ).new
            == 1201
        )
        assert [s.id for s in read_sentences(store)] == [f"s:{i}" for i in range(1201)]
        assert next(iter(read_sentences(store))).id == "s:0"
        assert len(list(unlabeled(store))) == count_sentences(store) == 1201


def test_a_sentence_knows_its_document_and_a_taken_id_can_be_replaced(url):
    with create_store(url, TAGS) as store:
        add_sentences(store, [Sentence.from_text(f"Line {i}", f"a:{i}") for i in range(2)])
        add_sentences(store, [Sentence.from_text("Alone", "alone")])
        changed = [("Line 0", "a:0"), ("New", "a:1"), ("Newer", "a:1"), ("Last", "a:2")]
        added = add_sentences(store, [Sentence.from_text(*pair) for pair in changed], rename=True)

        assert (added.new, added.duplicates) == (3, 1)
        assert [s.id for s in read_sentences(store)][3:] == ["a:1+2", "a:1+3", "a:2"]
        with store.reading() as conn:
            documents = conn.execute(
                select(sentences.c.document).order_by(sentences.c.position)
            ).scalars()
            assert list(documents) == ["a", "a", None, "a", "a", "a"]
