"""A student learns from its teachers' mean, and only from sentences nobody has labeled."""

from __future__ import annotations

import numpy as np
import pytest

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.loop.selftraining import SelfTraining, self_trained, taught
from seqmix.testing import WordTagger

TAGS = TagSet.ordered(["O", "B-PER"])


class Teacher(WordTagger):
    """Gives every token the same row."""

    def __init__(self, *row: float) -> None:
        super().__init__(TAGS)
        self.row = row

    def odds(self, word: str) -> tuple[float, ...]:
        return self.row


def sentences(n: int) -> list[Sentence]:
    return [Sentence(f"s{i}", ("word", str(i))) for i in range(n)]


def test_self_training_is_off_unless_teachers_are_given():
    assert SelfTraining() == SelfTraining(0, 2000, 0.0, 1, None, 1)


def test_rows_are_the_mean_of_the_teachers():
    (one,) = taught([Teacher(0.9, 0.1), Teacher(0.5, 0.5)], sentences(1))

    assert one.tags[0] == pytest.approx({"O": 0.7, "B-PER": 0.3})


def test_what_all_are_sure_of_is_one_tag():
    assert taught([Teacher(0.995, 0.005)], sentences(1))[0].tags == ("O", "O")


def test_sentences_of_too_little_confidence_are_left_out():
    assert taught([Teacher(0.6, 0.4)], sentences(3), confidence=0.7) == []
    assert len(taught([Teacher(0.8, 0.2)], sentences(3), confidence=0.7)) == 3


def test_the_student_sees_labels_repeated_and_unlabeled_sentences_once_and_its_own_steps():
    calls = []

    def fit(own, steps, rng, last):
        calls.append((list(own), steps, int(rng.integers(2**60))))
        return Teacher(0.7, 0.3)

    labeled = [Sentence("l", ("word", "3"), ("O", "B-PER"))]
    learn = self_trained(
        fit, lambda: sentences(10), SelfTraining(teachers=2, sentences=5, repeat=3, steps=40)
    )
    learn(labeled, 7, np.random.default_rng(0), None)

    assert [steps for _, steps, _ in calls] == [7, 7, 40]
    assert len({seed for _, _, seed in calls}) == 3, "teachers and student differ by seed"
    student = calls[-1][0]
    assert student[:3] == labeled * 3
    rest = student[3:]
    assert len(rest) == 5
    assert all(s.tokens != ("word", "3") for s in rest), "a labeled sentence is not taught again"
    assert [s.id for s in rest] == sorted(s.id for s in rest)


def test_students_of_one_generation_teach_the_next():
    calls = []

    def fit(own, steps, rng, last):
        calls.append((list(own), steps))
        return Teacher(*([0.9, 0.1], [0.7, 0.3])[steps == 40])

    learn = self_trained(
        fit, lambda: sentences(10), SelfTraining(teachers=2, sentences=4, steps=40, generations=2)
    )
    learn([Sentence("l", ("x",), ("O",))], 7, np.random.default_rng(0), None)

    assert [steps for _, steps in calls] == [7, 7, 40, 40, 40]
    rows = [own[1].tags[0] for own, steps in calls if steps == 40]
    assert rows[:2] == [pytest.approx({"O": 0.9, "B-PER": 0.1})] * 2
    assert rows[2] == pytest.approx({"O": 0.7, "B-PER": 0.3}), (
        "the last student learns from the students before it"
    )
    assert {s.id for s in calls[2][0]} != {s.id for s in calls[4][0]}, (
        "each generation draws its own sentences"
    )


def test_the_same_generator_draws_the_same_sentences():
    def drawn(seed):
        calls = []
        fit = lambda own, steps, rng, last: calls.append([s.id for s in own]) or Teacher(0.7, 0.3)  # noqa: E731
        self_trained(fit, lambda: sentences(30), SelfTraining(1, 5))(
            [Sentence("l", ("x",), ("O",))], None, np.random.default_rng(seed), None
        )
        return calls[-1]

    assert drawn(1) == drawn(1) != drawn(2)
