"""Several augmenters as one."""

from __future__ import annotations

import numpy as np

from seqmix.augment.combined import Together
from seqmix.augment.replacement import Replacement
from seqmix.data.augmented import Augmentation, Augmented, Lineage
from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence


class Empty:
    def augment(self, sentences, n, rng):
        return Augmentation((), n, "it never makes any")


def test_each_part_makes_its_share():
    made = Together((Replacement("mention"), Replacement("token"))).augment(
        sample("gazette:dev"), 11, np.random.default_rng(0)
    )

    methods = [one.lineage.method for one in made]
    assert (methods.count("mention"), methods.count("token")) == (6, 5)
    assert made.reason is None


class Plenty:
    def __init__(self, extra: int = 0) -> None:
        self.extra = extra

    def augment(self, sentences, n, rng):
        made = [
            Augmented(Sentence(f"{i}", (f"w{i}",), ("O",)), Lineage("plenty", (), ()))
            for i in range(n + self.extra)
        ]
        return Augmentation(tuple(made), n)


def test_as_many_as_asked_or_more_need_no_reason():
    for part in (Plenty(), Plenty(extra=1)):
        made = Together((part,)).augment([], 300, np.random.default_rng(0))

        assert len(made) == 300 + part.extra and made.reason is None


def test_the_first_makes_up_for_those_that_cannot():
    made = Together((Replacement("mention"), Empty())).augment(
        sample("gazette:dev"), 10, np.random.default_rng(0)
    )

    assert len(made) == 10 and made.reason is None


def test_fewer_than_asked_come_with_every_reason():
    made = Together((Empty(), Empty())).augment(sample("gazette:dev"), 10, np.random.default_rng(0))

    assert len(made) == 0 and made.reason == "it never makes any; it never makes any"


def test_the_same_generator_gives_the_same_sentences():
    both = [
        Together((Replacement("mention"), Replacement("shuffle"))).augment(
            sample("gazette:dev"), 8, np.random.default_rng(5)
        )
        for _ in "ab"
    ]

    assert both[0].sentences == both[1].sentences
