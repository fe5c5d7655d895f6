"""Augmentation in parts: the same sentences whoever works on them, none twice, none from before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from seqmix.data.augmented import Augmentation
from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, RunError
from seqmix.scale.augment_parts import augment_in_parts, shares
from seqmix.scale.local_executor import run_jobs
from tests.support import tiny
from tests.support.replacements import again, mentions, nothing


def test_the_sentences_are_the_same_in_one_process_and_in_two() -> None:
    train = sample("gazette:train")

    alone = augment_in_parts(mentions, train, 120, np.random.default_rng(1), size=100)
    parallel = augment_in_parts(mentions, train, 120, np.random.default_rng(1), 100, run_jobs, 2)

    assert alone == parallel and alone.asked == 120 and (len(alone) == 120 or alone.reason)
    tokens = [s.tokens for s in alone.sentences]
    assert len(set(tokens)) == len(tokens) and not {s.tokens for s in train} & set(tokens)
    assert len({s.id for s in alone.sentences}) == len(tokens) > 100


def test_parts_are_disjoint_and_their_shares_add_up() -> None:
    train = sample("gazette:train")

    parts = shares(train, 333, np.random.default_rng(0), 120)

    assert Counter(s.id for part in parts for s in part.sentences) == Counter(s.id for s in train)
    assert len(parts) == 4 and sum(part.n for part in parts) == 333
    assert max(part.n for part in parts) - min(part.n for part in parts) <= 1


def test_a_set_that_is_one_part_is_augmented_as_it_would_be_by_itself() -> None:
    train = sample("gazette:train")

    assert augment_in_parts(mentions, train, 30, np.random.default_rng(5)).outputs == (
        mentions().augment(train, 30, np.random.default_rng(5)).outputs
    )


def test_what_two_parts_make_comes_once_and_duplicates_stay_duplicates() -> None:
    class Same:
        def augment(
            self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator
        ) -> Augmentation:
            return mentions().augment(tiny.toy(8), n, np.random.default_rng(0))

    made = augment_in_parts(Same, tiny.toy(24), 4, np.random.default_rng(0), size=12)

    assert len(made) < 4 and "came out of two parts" in str(made.reason)
    assert len(augment_in_parts(again, tiny.toy(24), 24, np.random.default_rng(0), size=8)) == 24


def test_a_part_that_fails_and_a_part_too_small_are_said() -> None:
    with pytest.raises(RunError, match=r"part \d of 3: not today"):
        augment_in_parts(nothing, tiny.toy(24), 6, np.random.default_rng(0), 8, run_jobs, 2)
    with pytest.raises(ConfigError, match="--part-size must be at least 2"):
        augment_in_parts(mentions, tiny.toy(24), 6, np.random.default_rng(0), size=1)
