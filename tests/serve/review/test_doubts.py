"""The list of answers in doubt: about the answer that counts, to those who may see it."""

from __future__ import annotations

import pytest

from seqmix.errors import NotFoundError
from seqmix.serve.review.doubts import (
    compare_answers,
    gold_events,
    keep_answer,
    list_reviews,
    write_doubts,
)
from seqmix.serve.review.evidence import Doubt
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.queue import assign
from seqmix.serve.store.records import Annotator
from tests.support.stores import LOC, PER


@pytest.fixture
def boss(anna) -> Annotator:
    return Annotator(anna, "anna", admin=True)


def answered(store, annotator, id, marks):
    version = answer_version(store, id, annotator)
    return save_answer(store, id, annotator, "label", marks, version=version).seq


def doubted(store, **scores):
    new = [
        Doubt(id.replace("_", ":"), "model", score, {"spans": []}) for id, score in scores.items()
    ]
    return write_doubts(store, "model", new, gold_events(store))


def test_the_most_doubtful_answer_comes_first_and_doubts_about_it_add_up(store, anna, boss):
    seqs = {id: answered(store, anna, id, [PER]) for id in ("s:1", "s:2")}
    doubted(store, s_1=0.6, s_2=0.5)
    more = [Doubt("s:2", "inconsistent", 0.5, {"usual": "LOC"})]
    write_doubts(store, "inconsistent", more, gold_events(store))

    reviews, total = list_reviews(store, boss)

    assert [(review.sentence_id, review.score) for review in reviews] == [
        ("s:2", 0.75),
        ("s:1", 0.6),
    ]
    assert [review.seq for review in reviews] == [seqs["s:2"], seqs["s:1"]]
    assert {doubt.kind for doubt in reviews[0].doubts} == {"model", "inconsistent"}
    assert total == 2
    assert list_reviews(store, boss, limit=1)[1] == 2


def test_a_corrected_answer_is_no_longer_in_doubt(store, anna, boss):
    answered(store, anna, "s:1", [PER])
    doubted(store, s_1=0.9)
    answered(store, anna, "s:1", [LOC])

    assert list_reviews(store, boss) == ([], 0)


def test_what_a_person_kept_is_not_asked_again_until_the_answer_changes(store, anna, boss):
    seq = answered(store, anna, "s:1", [PER])
    doubted(store, s_1=0.9)
    assert keep_answer(store, boss, "s:1", seq) == 1
    assert list_reviews(store, boss) == ([], 0)

    doubted(store, s_1=0.95)
    assert list_reviews(store, boss) == ([], 0)

    answered(store, anna, "s:1", [LOC])
    doubted(store, s_1=0.7)
    assert [review.score for review in list_reviews(store, boss)[0]] == [pytest.approx(0.7)]


def test_keeping_can_be_taken_back(store, anna, boss):
    seq = answered(store, anna, "s:1", [PER])
    doubted(store, s_1=0.9)
    keep_answer(store, boss, "s:1", seq)
    keep_answer(store, boss, "s:1", seq, keep=False)

    assert list_reviews(store, boss)[1] == 1


def test_who_is_no_admin_sees_doubts_about_their_answers_only(store, anna, bo, boss):
    first, second = answered(store, anna, "s:1", [PER]), answered(store, bo, "s:2", [PER])
    doubted(store, s_1=0.9, s_2=0.8)
    reader = Annotator(bo, "bo")

    assert [review.sentence_id for review in list_reviews(store, reader)[0]] == ["s:2"]
    assert [review.sentence_id for review in list_reviews(store, boss)[0]] == ["s:1", "s:2"]
    assert keep_answer(store, reader, "s:2", second) == 1
    with pytest.raises(NotFoundError):
        keep_answer(store, reader, "s:1", first)
    with pytest.raises(NotFoundError):
        keep_answer(store, reader, "s:2\0", second)


def test_annotators_who_differ_are_a_doubt_that_only_admins_see(store, anna, bo, boss):
    seq = answered(store, anna, "s:1", [PER])
    with store.writing() as conn:
        assign(conn, "s:1", bo)
    save_answer(store, "s:1", bo, "label", [LOC])
    assert compare_answers(store) == 1

    (review,), _ = list_reviews(store, boss)
    assert (review.seq, review.doubts[0].kind) == (seq, "annotators")
    assert list_reviews(store, Annotator(anna, "anna")) == ([], 0)

    save_answer(store, "s:1", anna, "adjudicate", [PER], version=answer_version(store, "s:1"))
    assert list_reviews(store, boss) == ([], 0)
