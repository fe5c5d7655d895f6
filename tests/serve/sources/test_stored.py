"""Suggestions computed ahead: by models, from files, and those that only point at names."""

from __future__ import annotations

from collections import Counter

import pytest

from seqmix.app.suggesting import build_suggest
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, ModelError
from seqmix.serve.sources.adding import add_dictionary
from seqmix.serve.sources.figures import Figures
from seqmix.serve.sources.filling import Filler, trouble_note
from seqmix.serve.sources.offers import Sources
from seqmix.serve.sources.predictions import add_predictions
from seqmix.serve.sources.records import TAGGER, TYPES, add_source, find_source
from seqmix.serve.sources.stored import Suggestion, write_suggestions
from seqmix.serve.sources.terms import Terms
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.queue import coming_ids
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import read_audit_sentences, read_sentences
from seqmix.serve.tags.changes import Wish, change_tags
from tests.support.stores import LOC, PER, find_sentence, person, small_store


@pytest.fixture
def store(url):
    with small_store(url, audit=0.3) as opened:
        yield opened


def offered(store, id: str) -> dict[str, list[tuple[int, int, str]]]:
    offers = Sources(store).offers(find_sentence(store, id))
    return {offer.source: [tuple(mark) for mark in offer.marks] for offer in offers}


def active(store) -> list[str]:
    with store.reading() as conn:
        return coming_ids(conn, 100)


def test_what_models_suggest_is_filled_in_where_people_are_next_and_once_only(store):
    asked: list[str] = []

    def build(kind, settings):
        def suggest(sentences):
            asked.extend(sentence.id for sentence in sentences)
            return [[PER, LOC, Mark(1, 2, "GONE")] for _ in sentences]

        assert (kind, settings["tagger"]) == (TAGGER, "one")
        return suggest

    add_source(store, "ner", TAGGER, {"tagger": "one", "tags": ["PER"]})
    filler = Filler(store, build)
    while filler.step():
        pass

    first = active(store)
    assert asked == first  # not the audit sentences, which nobody has answered yet
    assert offered(store, first[0]) == {"ner": [PER, LOC]}
    audit = [sentence.id for sentence in read_audit_sentences(store)]
    for id in audit:
        save_answer(store, id, person(store, "anna").id, "label", [PER, Mark(2, 3, "PER")])
    while filler.step():
        pass
    assert sorted(asked[len(first) :]) == sorted(audit)
    (row,) = Figures(store).rows()
    assert row["f1"]["f1"] == 0.5  # half of its spans are right, and half are missing
    assert not Filler(store, build).step()


def test_a_model_that_cannot_be_loaded_says_why_and_does_not_stop_the_others(store):
    def build(kind, settings):
        if kind == TAGGER:
            raise ModelError("there is no such model\nat all")
        return lambda sentences: [[Mark(0, 1, "")] for _ in sentences]

    broken = add_source(store, "broken", TAGGER, {"tagger": "none"})
    add_source(store, "names", TYPES, {})
    filler = Filler(store, build)

    assert filler.step()
    assert offered(store, active(store)[0]) == {"names": [(0, 1, "")]}
    assert store.read_note(trouble_note(broken)) == "there is no such model"
    assert Figures(store).rows()[0]["trouble"] == "there is no such model"


def test_a_place_without_a_tag_is_kept_when_it_gets_any_tag(store):
    source = add_source(store, "names", TYPES, {})
    for sentence in read_sentences(store):
        marks = (Mark(0, 1, ""), Mark(3, 4, ""))
        write_suggestions(store, source, "1", [(sentence, Suggestion(sentence.id, marks))])
    sentence, sources = find_sentence(store, "s:1"), Sources(store)

    (offer,) = sources.offers(sentence)
    assert [span["tag"] for span in offer.to_json()["spans"]] == [None, None]
    assert sources.shown(sentence, ["names"], [PER, Mark(2, 4, "LOC")]) == {
        "names": [2, 1, "types"]
    }
    for audited in read_audit_sentences(store):
        save_answer(store, audited.id, person(store, "anna").id, "label", [PER, LOC])
    assert Figures(store).rows()[0]["f1"]["f1"] == 1.0


def test_wrong_places_and_tags_never_reach_the_store(store):
    source = add_source(store, "names", TYPES, {})
    sentence = find_sentence(store, "s:1")
    for mark in (Mark(0, 9, ""), Mark(-1, 1, ""), Mark(2, 2, "PER"), Mark(0, 1, "ORG")):
        with pytest.raises(DataError):
            write_suggestions(store, source, "1", [(sentence, Suggestion("s:1", (mark,)))])
    assert offered(store, "s:1") == {}


def test_predictions_of_a_file_fit_whatever_cut_its_tokens(store):
    predicted = [
        Sentence("a", ("Lena1", "left", "Os", "lo."), ("B-PER", "O", "B-LOC", "I-LOC")),
        Sentence("b", ("Lena", "2", "left", "Oslo", "."), ("B-PER", "I-PER", "O", "B-X", "O")),
        Sentence("c", ("Len", "a3leftOslo."), ("B-PER", "O")),
        Sentence("d", ("elsewhere",), ("B-LOC",)),
    ]
    counts = Counter[str]()
    add_predictions(store, "old", predicted, counts)

    assert offered(store, "s:1") == {"old": [(0, 2, "PER"), (3, 5, "LOC")]}
    assert offered(store, "s:2") == {"old": [(0, 2, "PER")]}
    assert offered(store, "s:3") == offered(store, "s:4") == {}
    assert counts == {
        "spans of other tags left out": 1,
        "spans that cut a token left out": 1,
        "sentences with predictions": 3,
        "sentences that are not in the project left out": 1,
    }
    with pytest.raises(DataError, match="already exists"):
        add_predictions(store, "old", predicted, counts)


def test_suggestions_follow_the_tags_of_the_project(store):
    add_dictionary(store, "places", Terms((("Oslo", "LOC"),)))
    predicted = [s.with_tags(["B-PER", "O", "O", "B-LOC", "O"]) for s in read_sentences(store)]
    add_predictions(store, "old", predicted, Counter())
    change_tags(store, Wish("rename", "LOC", into=("PLACE",)))

    assert offered(store, "s:1") == {"places": [(3, 4, "PLACE")], "old": [PER, (3, 4, "PLACE")]}
    assert Sources(store).tags(find_source(store, "places")) == {"PLACE"}
    assert Sources(store).tags(find_source(store, "old")) == {"PER", "PLACE"}


def test_the_type_head_points_at_names():
    suggest = build_suggest(TYPES, {})
    texts = ("The painter Erik Hansen moved to Copenhagen in May .", "nothing is here", "")
    sentences = [Sentence(str(i), tuple(text.split())) for i, text in enumerate(texts)]

    first, second, third = (list(marks) for marks in suggest(sentences))

    assert Mark(2, 4, "") in first
    assert Mark(6, 7, "") in first
    assert (second, third) == ([], [])
    long = Sentence("long", ("Erik", "Hansen", "slept", ".") * 200)
    (marks,) = suggest([long])
    assert len(marks) > 150
    assert max(mark.end for mark in marks) > 750


def test_a_pipeline_of_spacy_suggests_with_a_map_of_its_types(store, tmp_path):
    spacy = pytest.importorskip("spacy", reason="needs the extra spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Oslo"}])
    nlp.to_disk(tmp_path / "ruler")
    name = f"spacy:{tmp_path / 'ruler'}:GPE=LOC"
    add_source(store, "spacy", TAGGER, {"tagger": name, "tags": ["LOC"]})

    assert Filler(store, build_suggest).step()
    assert offered(store, active(store)[0]) == {"spacy": [LOC]}
