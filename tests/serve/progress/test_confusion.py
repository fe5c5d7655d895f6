"""What annotators confuse: by pair of people and of tags, with an example."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.serve.progress.confusion import confusion, mark_differences
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.queue import assign
from seqmix.serve.store.records import Mark
from tests.support.stores import LOC, PER, person, small_store


@pytest.fixture
def store(url):
    with small_store(url) as opened:
        yield opened


def both(store, id: str, annas: list[Mark], bos: list[Mark], sure=None) -> None:
    """Both answer a sentence."""
    for name, marks in (("anna", annas), ("bo", bos)):
        with store.writing() as conn:
            assign(conn, id, person(store, name).id)
        save_answer(store, id, person(store, name).id, "label", marks, sure)


def test_without_two_answers_there_is_nothing(store):
    save_answer(store, "s:1", person(store, "anna").id, "label", [PER])

    assert confusion(store) == {"tags": [], "differences": []}


def test_differences_are_counted_by_people_tags_and_ends(store):
    both(store, "s:1", [PER, LOC], [PER, LOC])
    both(store, "s:2", [PER, LOC], [Mark(0, 1, "LOC")])
    both(store, "s:3", [Mark(0, 2, "PER")], [PER])
    both(store, "s:4", [PER], [Mark(0, 1, "LOC"), Mark(3, 4, "PER")])

    shown = confusion(store)

    assert [(row["tag"], row["marks"]) for row in shown["tags"]] == [("PER", 7), ("LOC", 5)]
    assert [row["f1"] for row in shown["tags"]] == [pytest.approx(2 / 7), pytest.approx(2 / 5)]
    first, *others = shown["differences"]
    assert first == {
        "a": "anna",
        "b": "bo",
        "tag_a": "PER",
        "tag_b": "LOC",
        "ends": False,
        "n": 2,
        "example": "s:2",
    }
    assert {(row["tag_a"], row["tag_b"], row["ends"], row["n"]) for row in others} == {
        ("LOC", None, False, 1),
        ("PER", "PER", True, 1),
        (None, "PER", False, 1),
    }


def test_only_the_part_counts_that_both_are_sure_of(store):
    both(store, "s:1", [PER], [PER], [(0, 2)])
    with store.writing() as conn:
        assign(conn, "s:2", person(store, "anna").id)
    save_answer(store, "s:2", person(store, "anna").id, "label", [PER], [(0, 2)])
    with store.writing() as conn:
        assign(conn, "s:2", person(store, "bo").id)
    save_answer(store, "s:2", person(store, "bo").id, "label", [PER, LOC])

    assert confusion(store)["differences"] == []


MARKS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 3), st.sampled_from("AB")), max_size=5
).map(lambda found: [Mark(start, start + n, tag) for start, n, tag in found])


@given(MARKS, MARKS)
def test_each_mark_that_is_not_shared_is_in_one_difference(annas, bos):
    differences = list(mark_differences(annas, bos))

    for place, mine, theirs in ((0, annas, bos), (1, bos, annas)):
        expected = sorted(mark.tag for mark in {*mine} - {*theirs})
        assert sorted(d[place] for d in differences if d[place] is not None) == expected
    assert all(d[0] != d[1] or d[2] for d in differences)
