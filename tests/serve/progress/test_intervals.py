"""What is claimed of the audit against what is true.

Intervals hold the truth as often as they say, and forecasts never say stop.
"""

from __future__ import annotations

import numpy as np
import pytest

from seqmix.serve.progress.forecast import forecast
from seqmix.serve.progress.intervals import F1, intervals, with_interval
from tests.support.audits import audited, late_riser, population, power_law

SIZES = (3, 5, 10, 20, 50)


def drawn(counts: np.ndarray, n: int, times: int) -> list[F1]:
    """Audits of n sentences each, as far as anything is said of them."""
    picked = counts[
        np.random.default_rng(n).integers(len(counts), size=(n, times))
    ]  # [n, times, 3]
    return [found for found in intervals(picked.transpose(0, 2, 1)) if found is not None]


def held(found: list[F1], true: float) -> float:
    return float(np.mean([one.low <= true <= one.high for one in found]))


@pytest.mark.parametrize("f1", [0.65, 0.84, 0.95])
@pytest.mark.parametrize(
    ("empty", "spread"),
    [(0.0, 0.7), (0.0, 8.0), (0.6, 2.0)],
    ids=["hard or easy", "even", "mostly empty"],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(f1, empty, spread):
    counts, true = population(f1, empty, spread)
    for n in SIZES:
        assert held(drawn(counts, n, 3000), true) >= 0.93, f"{n} sentences"


def test_with_many_sentences_the_interval_is_no_wider_than_its_level_needs():
    counts, true = population(0.84, 0.2, 8.0)
    found = drawn(counts, 400, 3000)

    assert 0.94 <= held(found, true) <= 0.965  # of a 90 % interval it would be 0.9
    assert {one.level for one in found} == {0.95}


@pytest.mark.parametrize(
    "rows", [[], [[1, 1, 1]], [[1, 1, 1], [2, 2, 0]], [[1, 1, 1], [2, 1, 1], *[[0, 0, 0]] * 20]]
)
def test_below_three_sentences_with_a_span_nothing_is_claimed(rows):
    assert with_interval(np.array(rows, dtype=np.float64).reshape(-1, 3)) is None


@pytest.mark.parametrize("rising", [power_law, late_riser])
@pytest.mark.parametrize(("sentences", "models"), [(10, 5), (10, 16), (20, 8), (40, 5)])
def test_on_a_rising_curve_it_is_seldom_said_that_nothing_more_is_to_come(
    rising, sentences, models
):
    rng, wrong, climbing = np.random.default_rng(1), 0, 0
    for _ in range(100):
        labeled = rng.choice([10, 15, 25]) * np.arange(1, models + 1.0)
        curve = rising(rng, labeled[0])
        found = forecast(labeled, audited(curve(labeled), sentences, rng))
        assert found.low <= found.gain <= found.high
        if curve(labeled[-1] + found.labels) - curve(labeled[-1]) >= 0.01:
            climbing += 1
            wrong += found.little
    assert climbing >= 20
    assert wrong <= 0.05 * climbing


def test_on_a_level_curve_it_is_said_that_nothing_more_is_to_come():
    rng, said = np.random.default_rng(1), 0
    for _ in range(50):
        labeled = 20 * np.arange(1, 13.0)
        said += forecast(labeled, audited(0.85 - 0.3 * np.exp(-labeled / 12), 40, rng)).little
    assert said >= 25
