"""Mixed sentences as lessons: kept by a band of the teachers' agreement, tagged by either."""

from __future__ import annotations

import numpy as np
import pytest

from seqmix.data.augmented import Augmentation, Augmented, Lineage
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.loop.mixed_lessons import agreement, mixed_lessons

TAGS = TagSet.ordered(["O", "B-PER", "B-LOC"])
LABELED = [Sentence("a", ("Oslo", "burns"), ("B-LOC", "O"))]


class Generator:
    """Generates sentences w0, w1 … whose first word is tagged B-LOC."""

    def augment(self, sentences, n, rng):
        outputs = [
            Augmented(
                Sentence(f"g{i}", (f"w{i}", "burns"), ({"B-LOC": 0.7, "B-PER": 0.3}, "O")),
                Lineage("sub", ("a", "a"), ((0, 1), (0, 1))),
            )
            for i in range(n)
        ]
        return Augmentation(tuple(outputs), n)


class Teacher:
    """Is the surer that w… is a place, the higher its number."""

    tag_set = TAGS

    def probabilities(self, sentences):
        for sentence in sentences:
            sure = (int(sentence.tokens[0][1:]) + 1) / 20
            view = [{"O": 1 - sure, "B-LOC": sure}, {"O": 1}]
            yield np.array([[row.get(tag, 0) for tag in TAGS.tags] for row in view])


def lessons(**how):
    return mixed_lessons(
        Generator(), 6, [Teacher(), Teacher()], LABELED, np.random.default_rng(0), **how
    )


def test_all_are_kept_with_their_mixed_tags_by_default():
    kept = lessons()
    assert [sentence.id for sentence in kept] == [f"g{i}" for i in range(6)]
    assert dict(kept[0].tags[0]) == {"B-LOC": 0.7, "B-PER": 0.3}
    assert {sentence.weight for sentence in kept} == {1.0}


def test_a_band_generates_more_and_keeps_those_that_the_teachers_half_agree_with():
    kept = lessons(band=(1 / 3, 2 / 3), weight=0.3)
    assert [sentence.id for sentence in kept] == [f"g{i}" for i in range(6, 12)]
    assert {sentence.weight for sentence in kept} == {0.3}


def test_teachers_may_tag_the_mixed_text():
    (row, other), *_ = (sentence.tags for sentence in lessons(labels="teachers"))
    assert row == {"O": pytest.approx(0.95), "B-LOC": pytest.approx(0.05)}
    assert other == "O"


def test_agreement_is_about_the_new_words_alone():
    (new,) = Generator().augment(LABELED, 1, None)
    view = np.array([[0.5, 0.2, 0.3], [0.0, 1.0, 0.0]])
    assert agreement(new, view, ["O", "B-PER", "B-LOC"]) == pytest.approx(
        np.log(0.7 * 0.3 + 0.3 * 0.2)
    )
