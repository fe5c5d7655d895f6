"""The share of suggestions that people kept, and the F1 of each source on random sentences."""

from __future__ import annotations

import pytest

from seqmix.serve.sources.adding import add_dictionary
from seqmix.serve.sources.figures import Figures
from seqmix.serve.sources.records import enable_source, remove_source
from seqmix.serve.sources.terms import Terms
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.sentences import read_audit_sentences
from tests.support.stores import LOC, PER, person, small_store


@pytest.fixture
def store(url):
    with small_store(url, audit=0.4) as opened:
        add_dictionary(opened, "people", Terms((("Lena", "PER"), ("left", "PER"))))
        add_dictionary(opened, "places", Terms((("Oslo", "LOC"),)))
        yield opened


def kept(figures: Figures) -> dict[str, tuple[int, int]]:
    return {row["name"]: (row["offered"], row["kept"]) for row in figures.rows()}


def test_what_was_kept_is_counted_once_and_an_undo_takes_it_back(store):
    anna, figures = person(store, "anna").id, Figures(store, every=0.0)
    audit = {sentence.id for sentence in read_audit_sentences(store)}
    first, second, *_ = (f"s:{i}" for i in range(10) if f"s:{i}" not in audit)
    assert kept(figures) == {"people": (0, 0), "places": (0, 0)}

    save_answer(store, first, anna, "label", [PER], shown={"people": [2, 1], "model": [1, 0]})
    last = save_answer(store, second, anna, "label", [LOC], shown={"people": [2, 0]})

    assert last.shown == {"people": [2, 0]}
    assert kept(figures) == {"people": (4, 1), "places": (0, 0), "model": (1, 0)}
    undo_answer(store, anna, last.seq)
    assert kept(figures) == {"people": (2, 1), "places": (0, 0), "model": (1, 0)}
    assert kept(Figures(store)) == kept(figures)
    remove_source(store, "people")
    assert kept(figures) == {"places": (0, 0), "model": (1, 0)}


def test_f1_is_that_on_the_audit_over_the_tags_of_the_source(store):
    anna, figures = person(store, "anna").id, Figures(store, every=0.0)
    assert [row["f1"] for row in figures.rows()] == [None, None]

    for sentence in read_audit_sentences(store):
        save_answer(store, sentence.id, anna, "label", [PER, LOC])

    people, places = figures.rows()
    assert people["f1"]["n"] == 4
    assert people["f1"]["f1"] == pytest.approx(2 / 3)  # half of its spans are right, none missing
    assert places["f1"]["f1"] == 1.0
    enable_source(store, "places", False)
    assert [(row["on"], row["slow"]) for row in figures.rows()] == [(True, []), (False, [])]
