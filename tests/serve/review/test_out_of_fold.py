"""No tagger judges an answer that it has learned from."""

from __future__ import annotations

import numpy as np
import pytest

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import DataError
from seqmix.serve.review.evidence import model_doubt
from seqmix.serve.review.out_of_fold import opinions
from seqmix.testing import WordTagger

TAGS = TagSet.ordered(["O", "B-PER", "B-LOC"])


def test_each_answer_is_judged_once_by_a_tagger_that_has_not_seen_it():
    answers = [Sentence(f"s{i}", ("Ada", str(i)), ("B-PER", "O")) for i in range(13)]
    learned: list[set[str]] = []

    def fit(part, rng):
        learned.append({answer.id for answer in part})
        return WordTagger(TAGS).fit(part, rng)

    judged = [
        (answer.id, len(learned)) for answer, _ in opinions(fit, answers, np.random.default_rng(0))
    ]

    assert sorted(id for id, _ in judged) == sorted(answer.id for answer in answers)
    assert all(id not in learned[fold - 1] for id, fold in judged)
    assert [
        len(part) + sum(f == fold for _, f in judged) for fold, part in enumerate(learned, 1)
    ] == [13] * 5


def test_a_wrong_tag_among_right_ones_is_the_one_in_doubt_and_missing_tags_are_not():
    answers = [Sentence(f"s{i}", ("Ada", str(i)), ("B-PER", "O")) for i in range(18)]
    answers += [
        Sentence("odd", ("Ada", "x"), ("B-LOC", "O")),
        Sentence("part", ("Ada", "y"), (None, "O")),
    ]

    def fit(part, rng):
        return WordTagger(TAGS).fit(part, rng)

    said = list(opinions(fit, answers, np.random.default_rng(0)))
    doubts = [doubt for pair in said if (doubt := model_doubt(*pair))]

    assert [doubt.sentence_id for doubt in doubts] == ["odd"]
    assert doubts[0].score > 0.5
    assert all(0 <= p <= 1 for _, opinion in said for p in (*opinion.by_token, *opinion.answered))


def test_too_few_answers_are_an_error_that_says_how_many():
    with pytest.raises(DataError, match="at least 5 of them; there are 2"):
        list(
            opinions(lambda part, rng: None, [Sentence("a", ("x",))] * 2, np.random.default_rng(0))
        )
