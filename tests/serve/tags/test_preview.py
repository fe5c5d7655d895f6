"""What a change of the tags would touch is counted before it is made."""

from __future__ import annotations

import pytest
from sqlalchemy import or_, select

from seqmix.data.sentence import Sentence
from seqmix.errors import TagError
from seqmix.serve.sources.adding import add_dictionary
from seqmix.serve.sources.terms import Terms
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.events import is_current
from seqmix.serve.store.records import Mark
from seqmix.serve.store.schema import events
from seqmix.serve.store.sentences import add_sentences
from seqmix.serve.tags.changes import Wish, change_tags
from seqmix.serve.tags.preview import Touched, preview, tag_counts
from seqmix.serve.tags.touched import COUNTS
from tests.support.stores import LOC, PER, person, plan, small_store


@pytest.fixture
def store(url):
    with small_store(url) as opened:
        yield opened


def answer(store, id, name, *marks):
    by = person(store, name).id
    save_answer(store, id, by, "label", marks, version=answer_version(store, id, by))


def test_answers_spans_people_seeds_and_sources_are_counted(store):
    answer(store, "s:1", "anna", PER, LOC)
    answer(store, "s:1", "anna", PER, Mark(2, 3, "PER"))
    answer(store, "s:2", "bo", LOC)
    answer(store, "s:3", "bo", PER)
    seed = Sentence("seed", ("Bo", "in", "Rome"), ("B-PER", "O", {"B-LOC": 0.5, "O": 0.5}))
    add_sentences(store, [seed], seed=True)
    add_dictionary(store, "names", Terms((("Lena", "PER"),)))

    assert preview(store, Wish("rename", "PER", ("A",))) == Touched(2, 3, 2, 1, ("names",))
    assert preview(store, Wish("retire", "LOC")) == Touched(1, 1, 1, 1)
    assert preview(store, Wish("add", "ORG")) == Touched(answers=3, seed=1)
    assert preview(store, Wish("recolor", "LOC", color=3)) == Touched()
    assert tag_counts(store) == {"PER": 3, "LOC": 1}
    words = preview(store, Wish("rename", "PER", ("A",))).in_words()
    assert words == (
        "2 answers of 2 people with 3 spans, 1 sentence labeled before the project,"
        " suggestions of names"
    )


def test_what_was_given_under_an_earlier_name_counts_too(store):
    answer(store, "s:1", "anna", PER, LOC)
    change_tags(store, Wish("rename", "PER", ("Human",)))
    answer(store, "s:2", "anna", Mark(0, 1, "Human"))
    change_tags(store, Wish("split", "Human", ("Hero", "Crowd")))

    assert preview(store, Wish("merge", "Crowd", ("LOC",))) == Touched(2, 2, 1)
    assert preview(store, Wish("undo")) == Touched(2, 2, 1)
    assert tag_counts(store) == {"LOC": 1}, "the others are open"


def test_what_makes_no_sense_is_refused(store):
    with pytest.raises(TagError, match="there is no tag X"):
        preview(store, Wish("merge", "PER", ("X",)))
    with pytest.raises(TagError, match="no change"):
        preview(store, Wish("undo"))


def test_answers_that_count_are_found_by_their_sentence(tmp_path):
    """Not by a look at the whole queue for each: 20,000 answers of 100,000 took minutes."""
    with small_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        steps = plan(store, select(events.c.seq).where(or_(is_current(), COUNTS)))
    assert [step.split()[1] for step in steps if step.startswith("SCAN")] == ["events"]
