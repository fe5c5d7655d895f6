"""What sources offer for a sentence, who turns them off, and how much of it was kept."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, NotFoundError
from seqmix.serve.sources.adding import add_dictionary
from seqmix.serve.sources.llm.endpoint import Endpoint
from seqmix.serve.sources.offers import Sources
from seqmix.serve.sources.records import (
    LLM,
    add_source,
    change_source,
    enable_source,
    list_sources,
    remove_source,
)
from seqmix.serve.sources.stored import Suggestion, write_suggestions
from seqmix.serve.sources.terms import Terms
from seqmix.serve.store.records import Mark
from tests.support.stores import small_store

LENA, OSLO = (0, 1, "PER"), (3, 4, "LOC")
SENTENCE = Sentence.from_text("Lena 1 left Oslo .", "s:1")


@pytest.fixture
def store(url):
    with small_store(url) as opened:
        yield opened


def offered(sources: Sources) -> dict[str, list[tuple[int, int, str]]]:
    return {
        offer.source: [tuple(mark) for mark in offer.marks] for offer in sources.offers(SENTENCE)
    }


def test_sources_suggest_side_by_side_until_they_are_off_or_removed(store):
    sources = Sources(store)
    assert offered(sources) == {}
    add_dictionary(store, "people", Terms((("Lena", "PER"), ("Lena 1", "LOC"), ("Oslo", "GONE"))))
    add_dictionary(store, "places", Terms((("Oslo", "LOC"),), (("L[a-z]+", "PER"), ("l.*", "PER"))))

    assert offered(sources) == {"people": [(0, 2, "LOC")], "places": [LENA, OSLO]}
    enable_source(store, "people", False)
    assert offered(sources) == {"places": [LENA, OSLO]}
    remove_source(store, "places")
    enable_source(store, "people", True)
    assert offered(sources) == {"people": [(0, 2, "LOC")]}
    assert [source.name for source in list_sources(store)] == ["people"]


def test_what_was_shown_is_counted_by_source_for_the_names_that_were_on_the_page(store):
    sources = Sources(store)
    add_dictionary(store, "people", Terms((("Lena", "PER"),)))
    add_dictionary(store, "places", Terms((("Lena", "LOC"), ("Oslo", "LOC"))))
    model = {"spans": [{"start": 0, "end": 2, "tag": "PER", "confidence": 0.5}]}

    def shown(names):
        return sources.shown(SENTENCE, names, [LENA, OSLO], model)

    assert shown(("people", "places", "model")) == {
        "people": [1, 1, "dictionary"], "places": [2, 1, "dictionary"], "model": [1, 0],
    }  # fmt: skip
    assert shown(("people", "unknown")) == {"people": [1, 1, "dictionary"]}
    assert shown(()) == {}


def test_a_source_that_is_a_model_says_which_one_it_was_then(store):
    sources, endpoint = Sources(store), Endpoint("http://127.0.0.1:1", "small")
    source = add_source(store, "gpt", LLM, endpoint.to_json())
    write_suggestions(store, source, "1", [(SENTENCE, Suggestion("s:1", (Mark(*LENA),)))])

    assert sources.shown(SENTENCE, ["gpt"], [LENA]) == {"gpt": [1, 1, "llm", "small"]}
    change_source(store, "gpt", endpoint.changed({"model": "large"}).to_json())
    assert sources.shown(SENTENCE, ["gpt"], [LENA]) == {"gpt": [1, 1, "llm", "large"]}


def test_a_source_has_a_name_of_its_own(store):
    add_source(store, "places", "dictionary", {})

    for name in ("places", "model", "", "a\nb"):
        with pytest.raises(DataError):
            add_source(store, name, "dictionary", {})
    for change in (remove_source, lambda *place: enable_source(*place, False)):
        with pytest.raises(NotFoundError, match="no source 'nobody'"):
            change(store, "nobody")
