"""What speaks against an answer, as a score between 0 and 1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.sentence import Sentence
from seqmix.serve.review.evidence import Opinion, inconsistencies, model_doubt, together


def answer(id: str, text: str, *tags: str | None) -> Sentence:
    return Sentence(id, tuple(text.split()), tags)


def test_a_model_that_agrees_is_no_doubt_however_unsure():
    sentence = answer("a", "Lena left Oslo", "B-PER", "O", "B-LOC")
    opinion = Opinion(("B-PER", "O", "B-LOC"), (0.4, 0.9, 0.5), (0.4, 0.9, 0.5))

    assert model_doubt(sentence, opinion) is None


def test_a_model_that_disagrees_says_what_it_sees_and_how_sure_it_is():
    sentence = answer("a", "Lena left Oslo", "B-LOC", "O", "B-LOC")
    opinion = Opinion(("B-PER", "O", "B-LOC"), (0.9, 0.99, 0.5), (0.08, 0.99, 0.5))

    doubt = model_doubt(sentence, opinion)

    assert doubt is not None
    assert doubt.score == pytest.approx(0.92)
    assert doubt.details == {"spans": [[0, 1, "PER", 0.9], [2, 3, "LOC", 0.5]]}


def test_a_model_says_nothing_about_tokens_without_an_answer():
    sentence = answer("a", "Lena left Oslo", None, "O", "B-LOC")
    opinion = Opinion(("B-PER", "O", "B-LOC"), (0.9, 0.9, 0.9), (1.0, 0.9, 0.9))

    assert model_doubt(sentence, opinion) is None


def test_the_rarer_reading_of_a_text_is_in_doubt_and_names_the_usual_one():
    answers = [answer(f"s{n}", "from Oslo", "O", "B-LOC") for n in range(3)]
    answers += [answer("odd", "in Oslo", "O", "B-ORG"), answer("none", "to Oslo", "O", "O")]

    doubts = inconsistencies(answers)

    assert {doubt.sentence_id: doubt.details["reading"] for doubt in doubts} == {
        "odd": "ORG",
        "none": "O",
    }
    assert doubts[0].details["usual"] == "LOC"
    assert doubts[0].details["counts"] == {"LOC": 3, "ORG": 1, "O": 1}
    assert doubts[0].details["examples"] == [["s0", 1, 2], ["s1", 1, 2], ["s2", 1, 2]]
    assert doubts[0].score == pytest.approx(2 / 6)


def test_a_text_inside_a_longer_span_or_not_asked_about_is_no_other_reading():
    answers = [answer(f"s{n}", "from China", "O", "B-LOC") for n in range(3)]
    answers += [
        answer("bank", "Bank of China", "B-ORG", "I-ORG", "I-ORG"),
        answer("part", "in China", "O", None),
    ]

    assert inconsistencies(answers) == []


def test_a_tie_puts_nobody_in_doubt():
    answers = [answer("a", "Oslo", "B-LOC"), answer("b", "Oslo !", "B-ORG", "O")]

    assert inconsistencies(answers) == []


@given(st.lists(st.floats(0, 1), min_size=1))
def test_more_doubts_never_make_an_answer_more_certain(scores):
    assert max(scores) - 1e-9 <= together(scores) <= 1
