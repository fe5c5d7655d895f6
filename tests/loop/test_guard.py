"""The guard: augmentation on against off, on sentences that neither was trained on."""

from __future__ import annotations

import numpy as np
import pytest

from seqmix.data.augmented import Augmentation, Augmented, Lineage
from seqmix.data.sentence import Sentence
from seqmix.loop.guard import does_it_help
from tests.support.small_loops import corpus

EXTRA = Sentence("extra", ("w1",), ("O",))
LABELED = [Sentence(f"s{i}", ("Lena", f"w{i}"), ("B-PER", "O")) for i in range(9)]


class Adding:
    """An augmenter that keeps book of what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], int]] = []

    def augment(self, sentences, n, rng):
        self.asked.append(([s.id for s in sentences], n))
        return Augmentation((Augmented(EXTRA, Lineage("x", (), ())),) * n, n)


class Certain:
    """Finds the name, or nothing at all."""

    def __init__(self, right: bool) -> None:
        self.right, self.seen = right, []

    def predict(self, sentences):
        self.seen += [s.id for s in sentences]
        assert not any(s.labeled for s in sentences)
        return [
            s.with_tags(["B-PER" if self.right and token == "Lena" else "O" for token in s.tokens])
            for s in sentences
        ]


def guarded(right_with: bool, right_without: bool, labeled=LABELED, rate: float = 0.5, **more):
    """What the guard says where training with and without augmentation ends so; what it did."""
    augmenter, fits = Adding(), []

    def fit(sentences, steps, rng, last):
        tagger = Certain(right_with if EXTRA in sentences else right_without)
        fits.append(([s.id for s in sentences], steps, float(rng.random()), last, tagger))
        return tagger

    return (
        does_it_help(
            labeled, augmenter, rate, fit, lambda n: 10 * n, np.random.default_rng(0), **more
        ),
        augmenter,
        fits,
    )


@pytest.mark.parametrize(
    ("right_with", "right_without", "gain", "helps"),
    [(True, False, 1.0, True), (False, True, -1.0, False), (True, True, 0.0, True)],
)
def test_it_helps_unless_it_makes_the_held_out_f1_worse(
    right_with: bool, right_without: bool, gain: float, helps: bool
) -> None:
    found, _, _ = guarded(right_with, right_without)

    assert found == {"helps": helps, "gain": gain, "folds": [gain] * 3}


def test_both_train_equally_on_the_same_rest_and_are_tested_on_what_was_held_out() -> None:
    _, augmenter, fits = guarded(True, False)

    assert len(fits) == 6 and [n for _, n in augmenter.asked] == [
        3,
        3,
        3,
    ]  # half of the six that are left
    held_out = []
    for (kept, _), without, augmented in zip(augmenter.asked, fits[::2], fits[1::2], strict=True):
        assert without[0] == kept and augmented[0] == [*kept, *["extra"] * 3]
        assert without[1] == augmented[1] == 10 * (6 + 3)
        assert without[2] == augmented[2] and without[3] is augmented[3] is None
        assert without[4].seen == augmented[4].seen and not {*kept} & {*without[4].seen}
        held_out += without[4].seen
    assert sorted(held_out) == sorted(s.id for s in LABELED)
    assert len({fit[2] for fit in fits}) == 3  # a seed for each fold


def test_there_are_no_more_folds_than_sentences() -> None:
    assert len(guarded(True, True, LABELED[:2])[0]["folds"]) == 2
    assert len(guarded(True, True, corpus(20), folds=5)[0]["folds"]) == 5


def test_tokens_without_a_label_count_neither_for_nor_against() -> None:
    part = [Sentence(s.id, (*s.tokens, "Lena"), (*s.tags, None)) for s in LABELED]

    assert guarded(True, False, part)[0]["folds"] == guarded(True, False)[0]["folds"] == [1.0] * 3
