"""Disagreement: Eq. 4 and mutual information, written out."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.errors import ConfigError
from seqmix.query.committee import BALD, mutual_information, qbc, vote_entropy
from tests.support.pool_views import choose, distributions, make_view

seeds = st.integers(0, 9999)


@given(seed=seeds, members=st.integers(1, 6), length=st.integers(1, 12))
def test_vote_entropy_is_equation_4(seed: int, members: int, length: int) -> None:
    votes = np.random.default_rng(seed).integers(5, size=(members, length))
    total = 0.0
    for t in range(length):
        for count in Counter(int(votes[c, t]) for c in range(members)).values():
            total += count / members * math.log(count / members)

    assert vote_entropy(votes) == pytest.approx(-total / length, abs=1e-12)


@given(seed=seeds, members=st.integers(1, 6))
def test_a_committee_of_one_mind_scores_zero(seed: int, members: int) -> None:
    one = np.random.default_rng(seed).integers(5, size=7)

    assert vote_entropy(np.tile(one, (members, 1))) == 0


@given(seed=seeds, passes=st.integers(1, 6), length=st.integers(1, 9))
def test_mutual_information_is_as_written_out(seed: int, passes: int, length: int) -> None:
    def entropy(row: list[float]) -> float:
        return -sum(p * math.log(p) for p in row if p > 0)

    probs = distributions(np.random.default_rng(seed), passes, length)
    total = 0.0
    for t in range(length):
        rows = [[float(p) for p in probs[k, t]] for k in range(passes)]
        total += (
            entropy([sum(column) / passes for column in zip(*rows, strict=True)])
            - sum(map(entropy, rows)) / passes
        )

    assert mutual_information(probs) == pytest.approx(max(total / length, 0), abs=1e-9)


@given(seed=seeds)
def test_equal_passes_tell_nothing_and_different_ones_something(seed: int) -> None:
    one = distributions(np.random.default_rng(seed), 4)
    other = np.roll(one, 1, axis=1)

    assert 0 <= mutual_information(np.stack([one] * 10)) < 1e-12
    assert mutual_information(np.stack([one, other])) > 0


def test_both_ask_where_opinions_differ() -> None:
    view = make_view(6)
    for id, votes in view.vote.items():
        if id != "s3":
            votes[:] = votes[0]
            view.masks[id][:] = view.masks[id][0]
    view.vote["s3"][:] = [[0], [1], [2]]

    for score in (qbc, BALD()):
        assert list(choose(score, view, 1, np.random.default_rng(0))) == ["s3"]


def test_bald_compares_ten_passes_unless_told_otherwise() -> None:
    view = make_view(3)
    asked = []
    view.dropped = lambda passes: asked.append(passes) or iter(())

    for policy in (BALD(), BALD(2)):
        list(policy(view))

    assert asked == [10, 2]


def test_policies_without_settings_are_equal() -> None:
    assert BALD() == BALD() != BALD(3)


def test_bald_needs_two_passes() -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        BALD(1)
