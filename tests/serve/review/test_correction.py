"""An answer in doubt is read and corrected by who may do so."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, NotFoundError, StaleError
from seqmix.serve.review.correction import correct_answer, proposal, read_answer
from seqmix.serve.review.evidence import Doubt
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.records import Annotator, Mark
from seqmix.serve.store.sentences import add_sentences, read_labeled_by_id
from tests.support.stores import LOC, PER


def test_who_gave_an_answer_corrects_it_and_an_admin_decides_about_those_of_others(store, anna, bo):
    seq = save_answer(store, "s:1", bo, "label", [PER], sure=[(0, 2)]).seq
    theirs = read_answer(store, Annotator(bo, "bo"), "s:1", seq)
    admins = read_answer(store, Annotator(anna, "anna", admin=True), "s:1", seq)

    assert (theirs.kind, theirs.mine, theirs.spans, theirs.sure) == (
        "label",
        True,
        (PER,),
        ((0, 2),),
    )
    assert (admins.kind, admins.mine, admins.annotator) == ("adjudicate", False, "bo")

    event, before = correct_answer(
        store, Annotator(anna, "anna", admin=True), "s:1", seq, [LOC], None, 2.0, admins.version
    )
    assert (event.kind, before.spans) == ("adjudicate", (PER,))
    assert ["B-LOC" in s.tags for s in read_labeled_by_id(store, ["s:1"])] == [True]
    with pytest.raises(StaleError, match="changed since"):
        read_answer(store, Annotator(bo, "bo"), "s:1", seq - 1)


def test_others_cannot_correct_an_answer_and_a_decision_is_about_the_whole(store, anna, bo):
    seq = save_answer(store, "s:1", bo, "label", [PER]).seq
    with pytest.raises(NotFoundError):
        correct_answer(store, Annotator(anna, "anna"), "s:1", seq, [LOC], None, 0.0, seq)
    with pytest.raises(DataError, match="whole sentence"):
        correct_answer(store, Annotator(anna, "a", admin=True), "s:1", seq, [], [(0, 1)], 0.0, seq)
    with pytest.raises(NotFoundError):
        read_answer(store, Annotator(anna, "anna", admin=True), "s:2", None)


def test_labels_of_the_seed_are_read_with_the_part_that_has_labels(store, anna):
    seed = Sentence("seed", ("Ada", "went", "home"), ("B-PER", "O", None))
    add_sentences(store, [seed], seed=True)

    reading = read_answer(store, Annotator(anna, "anna", admin=True), "seed", None)

    assert (reading.spans, reading.sure, reading.annotator) == (
        (Mark(0, 1, "PER"),),
        ((0, 2),),
        None,
    )


def test_a_doubt_proposes_what_the_model_sees_or_how_the_text_is_usually_tagged():
    answered = (Mark(0, 1, "PER"), Mark(3, 5, "ORG"))
    model = Doubt("a", "model", 0.9, {"spans": [[2, 3, "LOC", 0.8]]})
    retagged = Doubt("a", "inconsistent", 0.9, {"start": 3, "end": 4, "usual": "LOC"})
    unmarked = Doubt("a", "inconsistent", 0.9, {"start": 0, "end": 1, "usual": "O"})
    tags = ("PER", "LOC", "ORG")

    assert proposal(model, answered, tags) == (Mark(2, 3, "LOC"),)
    assert proposal(retagged, answered, tags) == (Mark(0, 1, "PER"), Mark(3, 4, "LOC"))
    assert proposal(unmarked, answered, tags) == (Mark(3, 5, "ORG"),)
    assert proposal(model, answered, ("PER",)) is None
    assert proposal(Doubt("a", "annotators", 0.5, {}), answered, tags) is None
