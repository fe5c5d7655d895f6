"""Intervals and tests held against scipy, and the ends of the range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, interpolate, stats

from seqmix.report.statistics import (
    Curve,
    area_under_curve,
    detectable_difference,
    labels_saved,
    labels_to_reach,
    mean_interval,
    paired_interval,
    paired_permutation,
    wilcoxon,
)

FIRST = [0.81, 0.84, 0.79, 0.86, 0.83, 0.80]
SECOND = [0.80, 0.80, 0.80, 0.82, 0.81, 0.785]


def test_the_mean_has_scipys_t_interval() -> None:
    found = mean_interval(FIRST, level=0.9)

    expected = stats.t.interval(0.9, len(FIRST) - 1, loc=np.mean(FIRST), scale=stats.sem(FIRST))
    assert (found.mean, found.low, found.high) == pytest.approx((np.mean(FIRST), *expected))


def test_one_value_has_no_interval_and_equal_values_have_an_empty_one() -> None:
    assert not mean_interval([0.5]).known and mean_interval([0.5]).mean == 0.5
    assert mean_interval([0.5, 0.5, 0.5]).low == mean_interval([0.5, 0.5, 0.5]).high == 0.5
    assert mean_interval([]).n == 0


def test_the_exact_permutation_test_is_scipys() -> None:
    expected = stats.permutation_test(
        (FIRST, SECOND), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=np.inf
    )

    assert paired_permutation(FIRST, SECOND, np.random.default_rng(0)) == pytest.approx(
        expected.pvalue
    )


def test_many_pairs_are_drawn_and_come_near_the_t_test() -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(0.004, 0.01, 40)

    found = paired_permutation(first, np.zeros(40), np.random.default_rng(0))

    assert found == paired_permutation(first, np.zeros(40), np.random.default_rng(0))
    assert found == pytest.approx(stats.ttest_1samp(first, 0).pvalue, abs=0.01)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_a_p_is_never_below_what_the_number_of_pairs_allows(differences: list[float]) -> None:
    p = paired_permutation(differences, [0.0] * len(differences), np.random.default_rng(0))

    assert 2 / 2 ** len(differences) <= p <= 1


def test_no_difference_is_no_evidence() -> None:
    assert paired_permutation(FIRST, FIRST, np.random.default_rng(0)) == 1
    assert wilcoxon(FIRST, FIRST) == 1
    assert math.isnan(wilcoxon([], []))


def test_the_interval_of_paired_differences_is_scipys_at_the_level_asked_for() -> None:
    differences = np.subtract(FIRST, SECOND)

    for level in (0.95, 0.9):
        found = paired_interval(FIRST, SECOND, level)
        expected = stats.ttest_rel(FIRST, SECOND).confidence_interval(level)
        assert (found.mean, found.low, found.high) == pytest.approx((differences.mean(), *expected))
    assert not paired_interval([1.0], [0.5]).known


def test_an_interval_over_few_pairs_covers_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(0).normal(1.0, 2.0, size=(2000, 5))
    found = [paired_interval(row, [0.0] * 5) for row in drawn.tolist()]

    assert np.mean([one.low <= 1 <= one.high for one in found]) == pytest.approx(
        0.95, abs=0.02
    )  # a percentile bootstrap: 0.85


def test_wilcoxon_is_scipys_on_the_pairs_that_differ() -> None:
    assert wilcoxon(FIRST, SECOND) == pytest.approx(stats.wilcoxon(FIRST, SECOND).pvalue)
    assert wilcoxon([*FIRST, 0.5], [*SECOND, 0.5]) == pytest.approx(wilcoxon(FIRST, SECOND))
    assert wilcoxon([0.5, 0.6, 0.7, 0.8], [0.4, 0.5, 0.6, 0.7]) == pytest.approx(0.125)  # ties
    assert wilcoxon([0.6], [0.5]) == 1


def test_values_that_do_not_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="2 and 1 values"):
        wilcoxon([1.0, 2.0], [1.0])


def test_the_area_is_the_mean_height() -> None:
    assert area_under_curve(Curve((100, 200, 400), (0.5, 0.7, 0.7))) == pytest.approx(
        (0.6 * 100 + 0.7 * 200) / 300
    )
    assert area_under_curve(Curve((100,), (0.5,))) == 0.5
    assert math.isnan(area_under_curve(Curve((), ())))


def test_labels_are_read_between_the_points() -> None:
    curve = Curve((100, 200, 300), (0.5, 0.7, 0.6))

    assert labels_to_reach(curve, 0.6) == pytest.approx(150)
    assert labels_to_reach(curve, 0.4) == 100
    assert labels_to_reach(curve, 0.7) == 200
    assert labels_to_reach(curve, 0.71) is None


def test_labels_saved_are_counted_from_where_the_baseline_first_stands_at_its_end() -> None:
    plateau = Curve((100, 200, 300), (0.5, 0.7, 0.7))

    assert labels_saved(Curve((100, 200, 300), (0.6, 0.8, 0.9)), plateau) == pytest.approx(50)
    assert labels_saved(plateau, plateau) == 0
    assert labels_saved(Curve((100, 300), (0.5, 0.7)), plateau) == -100
    assert labels_saved(Curve((100, 300), (0.5, 0.6)), plateau) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.floats(0, 1)),
        min_size=2,
        max_size=12,
        unique_by=lambda point: point[0],
    )
)
def test_the_area_is_scipys_trapezoid_over_the_range(points: list[tuple[int, float]]) -> None:
    x, y = zip(*sorted(points), strict=True)

    assert area_under_curve(Curve(x, y)) == pytest.approx(
        integrate.trapezoid(y, x) / (x[-1] - x[0])
    )


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=8), st.floats(0.1, 0.9))
def test_labels_to_reach_is_the_inverse_of_scipys_straight_lines(
    steps: list[float], share: float
) -> None:
    """On a rising curve, the labels at a target, and the F1 at these, give the target back."""
    y = np.cumsum(steps)
    x = 100.0 * np.arange(len(y))
    target = y[0] + share * (y[-1] - y[0])

    needed = labels_to_reach(Curve(tuple(x), tuple(y)), target)

    assert needed is not None
    assert interpolate.make_interp_spline(x, y, k=1)(needed) == pytest.approx(target)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_every_mean_interval_is_scipys(values: list[float], level: float) -> None:
    found = mean_interval(values, level)
    expected = (
        stats.ttest_1samp(values, 0).confidence_interval(level)
        if np.ptp(values) > 1e-9
        else (np.mean(values),) * 2
    )

    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-9)


@settings(max_examples=25)  # scipy goes through all signs: 10 s for a hundred
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=12))
def test_every_wilcoxon_p_is_scipys_with_zeros_left_out(differences: list[int]) -> None:
    moved = [d for d in differences if d]
    expected = stats.wilcoxon(moved).pvalue if moved else 1.0

    assert wilcoxon(differences, [0] * len(differences)) == pytest.approx(expected)


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=7))
def test_every_exact_permutation_p_is_scipys(differences: list[int]) -> None:
    given_pairs = (np.array(differences, dtype=float), np.zeros(len(differences)))
    expected = stats.permutation_test(
        given_pairs,
        lambda a, b, axis: np.sum(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )

    assert paired_permutation(*given_pairs, np.random.default_rng(0)) == pytest.approx(
        expected.pvalue
    )


def test_a_difference_that_can_be_shown_is_found_again_in_simulated_pairs():
    smallest = detectable_difference(10, 1.5)
    draws = np.random.default_rng(0).normal(smallest, 1.5, size=(4000, 10))

    shown = [not interval.low <= 0 <= interval.high for interval in map(mean_interval, draws)]

    assert np.mean(shown) == pytest.approx(0.8, abs=0.02)


def test_more_seeds_show_smaller_differences_and_one_shows_none():
    assert detectable_difference(40, 1) < detectable_difference(10, 1) < detectable_difference(5, 1)
    assert detectable_difference(1, 1) == np.inf
