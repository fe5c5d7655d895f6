"""The marks of each tag, and the model's F1 on it."""

from __future__ import annotations

import pytest

from seqmix.serve.progress.by_tag import TagProgress
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.records import Generation
from seqmix.serve.store.sentences import read_audit_sentences
from tests.support.stores import LOC, PER, person, small_store


def test_marks_are_counted_and_f1_is_that_of_the_newest_model_on_the_audit(url):
    with small_store(url, audit=0.4) as store:
        anna, tags = person(store, "anna").id, TagProgress(store, every=0.0)
        assert [row["spans"] for row in tags.rows()] == [0, 0]
        audit = [sentence.id for sentence in read_audit_sentences(store)]
        for id in audit:
            save_answer(store, id, anna, "label", [PER, LOC])
        right, wrong = [[0, 1, "PER"]], [[0, 1, "LOC"], [3, 4, "LOC"]]
        for number, guess in ((1, wrong), (2, right)):
            predicted = [{"id": id, "marks": guess} for id in audit]
            publish_generation(store, Generation(number, 4, audit=predicted))

        per, loc = tags.rows()

        assert (per["tag"], per["spans"], per["sentences"]) == ("PER", 4, 4)
        assert (per["f1"]["f1"], loc["f1"]["f1"]) == (pytest.approx(1), pytest.approx(0))
        assert per["f1"]["low"] < 0.9 and loc["f1"]["high"] > 0.1


def test_too_few_audit_answers_give_no_f1(url):
    with small_store(url, audit=0.4) as store:
        first = read_audit_sentences(store)[0].id
        save_answer(store, first, person(store, "anna").id, "label", [PER])
        publish_generation(store, Generation(1, 4, audit=[{"id": first, "marks": []}]))

        assert [row["f1"] for row in TagProgress(store).rows()] == [None, None]
