"""Holm's correction held against scipy's neighbors of it, and the test of small effects."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from results_statistics import holm, is_negligible


def test_holm_multiplies_by_the_tests_that_are_left_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_does_not_count_a_test_that_could_not_be_made() -> None:
    first, none = holm([0.02, math.nan])

    assert first == 0.02 and math.isnan(none)


def test_holm_is_the_closed_test_of_bonferroni() -> None:
    """scipy has no Holm: by definition, a hypothesis falls when each set with it does."""
    ps = [0.011, 0.02, 0.03, 0.2]
    sets = [own for size in range(1, 5) for own in combinations(range(4), size)]
    closed = [
        max(min(1.0, len(own) * min(ps[i] for i in own)) for own in sets if at in own)
        for at in range(4)
    ]

    assert holm(ps) == pytest.approx(closed)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_lies_between_no_correction_and_scipys_weakest_and_strongest(ps: list[float]) -> None:
    """Never below Benjamini and Hochberg's, which promises less, never above Bonferroni's."""
    found = np.array(holm(ps))

    assert (found >= stats.false_discovery_control(ps, method="bh") - 1e-12).all()
    assert (found <= np.minimum(1, len(ps) * np.array(ps)) + 1e-12).all()


def test_a_difference_is_negligible_when_both_bounds_are_rejected():
    assert is_negligible([0.1, -0.2, 0.3, 0.0, 0.1], 1)
    assert not is_negligible([0.1, 1.9, 0.3, 1.5, 0.9], 1)
    assert not is_negligible([0.1], 1)
