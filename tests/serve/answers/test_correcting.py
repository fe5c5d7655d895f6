"""Who may correct which answer, and what becomes of the one before."""

from __future__ import annotations

import pytest

from seqmix.errors import NotFoundError, StaleError
from seqmix.serve.answers.correcting import read_correction
from seqmix.serve.sources.llm.annotator import save_over_models
from seqmix.serve.store.annotators import add_model_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.bulk import ACCEPT, accept_answers, bulk_ids
from seqmix.serve.store.current import current_answers, gold_answers
from seqmix.serve.store.records import Annotator
from seqmix.serve.tags.changes import Wish, change_tags
from tests.support.stores import LOC, PER, derived, rebuild


def kind_for(store, reader: Annotator, seq: int) -> str | None:
    try:
        return read_correction(store, reader, seq).kind
    except NotFoundError:
        return None


def test_ones_own_is_corrected_by_a_label_and_that_of_another_by_an_admins_decision(
    store, anna, bo
):
    people = Annotator(anna, "anna", True), Annotator(anna, "anna"), Annotator(bo, "bo")
    answer = save_answer(store, "s:1", bo, "label", [PER]).seq
    skip = save_answer(store, "s:2", bo, "skip").seq
    discard = save_answer(store, "s:3", bo, "discard").seq
    assert [kind_for(store, who, answer) for who in people] == ["adjudicate", None, "label"]
    assert [kind_for(store, who, skip) for who in people] == [None, None, "label"]
    assert [kind_for(store, who, discard) for who in people] == ["adjudicate", None, "label"]

    there = read_correction(store, people[0], answer)
    decision = save_answer(store, "s:1", anna, there.kind, [LOC], version=there.version).seq
    assert [kind_for(store, who, decision) for who in people] == ["adjudicate", None, None]
    again = read_correction(store, people[0], decision)
    save_answer(store, "s:1", anna, again.kind, [], version=again.version)
    with pytest.raises(StaleError, match="changed since"):
        read_correction(store, people[0], decision)
    with pytest.raises(NotFoundError):
        read_correction(store, people[0], 10**6)


def test_anybodys_label_replaces_a_models_and_what_was_accepted_in_bulk(store, anna, bo):
    model = add_model_annotator(store, "model:gpt").id
    seqs = [save_answer(store, "s:1", model, "label", [PER], stream="source").seq]
    accept_answers(store, add_batch(store, ACCEPT, anna, {}), anna, [("s:2", [PER])])
    seqs += [answer.seq for answer in current_answers(store, "s:2")]

    for id, seq in zip(("s:1", "s:2"), seqs, strict=True):
        there = read_correction(store, Annotator(bo, "bo"), seq)
        assert there.kind == "label"
        save_over_models(store, id, bo, "label", [LOC], version=there.version)
        with pytest.raises(StaleError):
            read_correction(store, Annotator(bo, "bo"), seq)
    assert [(a.annotator, a.spans, a.stream) for a in gold_answers(store)] == [
        ("bo", (LOC,), "active")
    ] * 2
    assert bulk_ids(store) == set()
    before = derived(store)
    rebuild(store)
    assert derived(store) == before


def test_a_models_answer_that_no_longer_counts_is_left(store, anna, bo):
    model = add_model_annotator(store, "model:gpt").id
    seq = save_answer(store, "s:1", model, "label", [PER], stream="source").seq
    save_answer(store, "s:1", anna, "adjudicate", [LOC], version=seq)
    assert kind_for(store, Annotator(bo, "bo"), seq) is None


def test_the_spans_of_a_split_tag_are_chosen_and_not_decided_away(store, anna, bo):
    seq = save_answer(store, "s:1", bo, "label", [LOC]).seq
    change_tags(store, Wish("split", "LOC", ("City", "River")))
    assert kind_for(store, Annotator(anna, "anna", True), seq) is None
    assert kind_for(store, Annotator(bo, "bo"), seq) == "label"
