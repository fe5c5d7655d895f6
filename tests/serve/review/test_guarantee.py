"""The threshold of what a model answers alone: exact, and never too lax."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from seqmix.serve.review.guarantee import (
    FEW_ANSWERS,
    FEW_OPEN,
    MANY_ERRORS,
    Judged,
    calibration,
    guarantee,
    least_audits,
    p_value,
)


@given(
    n=st.integers(1, 60), errors=st.integers(0, 10), size=st.integers(0, 200), alpha=st.floats(0, 1)
)
def test_the_test_is_the_exact_one_of_a_sample_without_replacement(n, errors, size, alpha):
    bad = math.floor(alpha * size) + 1
    exact = stats.hypergeom.cdf(min(errors, n), n + size, bad, n) if bad <= n + size else 1.0

    assert p_value(n, errors, size, alpha) == pytest.approx(exact, abs=1e-9)


def test_in_a_large_pool_it_is_the_binomial_test():
    for n, errors, alpha in ((150, 0, 0.02), (93, 1, 0.05), (400, 3, 0.02)):
        assert p_value(n, errors, 10**7, alpha) == pytest.approx(
            stats.binom.cdf(errors, n, alpha), rel=1e-3
        )
    assert least_audits(0.05) == 93
    assert stats.binom.cdf(1, 93, 0.05) <= 0.05 < stats.binom.cdf(1, 92, 0.05)


def population(rng, n=2000, slope=6.0):
    """Sentences whose confidence is too high: right less often than it says."""
    confidence = rng.beta(3, 0.6, n)
    return confidence, rng.random(n) < confidence**0.5 * (1 - 0.05 * (1 - confidence) * slope)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_the_realised_error_is_at_most_alpha_in_95_of_100_splits(alpha):
    rng = np.random.default_rng(0)
    confidence, right = population(rng)
    held, accepted = [], 0
    for _ in range(400):
        order = rng.permutation(len(right))
        audit, rest = order[:300], order[300:]
        judged = [Judged(float(confidence[i]), bool(right[i])) for i in audit]
        result = guarantee(judged, confidence[rest].tolist(), alpha)
        chosen = rest[confidence[rest] >= (result.threshold or math.inf)]
        assert len(chosen) == result.accepted
        held.append(not len(chosen) or (~right[chosen]).mean() <= alpha)
        accepted += len(chosen)

    assert np.mean(held) >= 0.95
    assert alpha < 0.3 or accepted > 0.3 * 400 * 1700


def test_without_enough_audit_answers_nothing_is_accepted_however_sure_the_model():
    sure = [Judged(0.99, True)] * (least_audits(0.02) // 2)

    result = guarantee(sure, [0.99] * 10_000, 0.02)

    assert (result.threshold, result.accepted, result.answered) == (None, 0, len(sure))
    assert (result.why, result.lost) == (FEW_ANSWERS, 0)
    assert guarantee([], [0.9], 0.1).accepted == 0
    assert guarantee([Judged(0.5, True)] * 500, [], 0.1).accepted == 0


def test_it_says_why_nothing_may_be_accepted():
    sure = [Judged(0.99, True)] * 300
    wrong = [Judged(0.99, bool(i % 10)) for i in range(300)]

    assert guarantee(sure, [0.99] * 1000, 0.05).why == ""
    half = guarantee(sure, [0.99] * 1000, 0.05, asked=0.8)
    assert (half.accepted, half.why, half.lost) == (0, FEW_ANSWERS, 240)
    many = guarantee(wrong, [0.99] * 1000, 0.05)
    assert (many.why, many.errors, many.audits) == (MANY_ERRORS, 30, 300)
    assert guarantee(sure, [0.99] * 19, 0.05).why == FEW_OPEN
    few = guarantee(sure[:100], [0.99] * 60, 0.05)
    assert few.why == FEW_ANSWERS
    assert least_audits(0.05, 60) > 100 > least_audits(0.05)  # a small pool takes more


def test_a_model_that_is_always_right_answers_all_and_one_that_is_wrong_nothing():
    right = [Judged(0.5 + i / 2000, True) for i in range(1000)]
    wrong = [Judged(0.5 + i / 2000, False) for i in range(1000)]
    rest = np.linspace(0.5, 1, 3000).tolist()

    everything = guarantee(right, rest, 0.02)
    assert (everything.accepted, everything.errors, everything.audits) == (3000, 0, 1000)
    assert everything.expected < 0.02
    assert guarantee(wrong, rest, 0.02).accepted == 0


def test_calibration_says_how_often_the_model_is_right_and_never_turns_the_order():
    rng = np.random.default_rng(1)
    confidence = rng.beta(4, 0.5, 4000)
    judged = [Judged(float(c), bool(rng.random() < c**3)) for c in confidence]
    calibrated = calibration(judged)

    for low, high in ((0.5, 0.8), (0.8, 0.95), (0.95, 1.0)):
        part = (confidence >= low) & (confidence < high)
        right = np.mean([j.right for j, inside in zip(judged, part, strict=True) if inside])
        assert calibrated(confidence[part]).mean() == pytest.approx(right, abs=0.05)
    assert (np.diff(calibrated(np.linspace(0, 1, 50))) >= 0).all()
    assert calibration([])(np.array([0.3])) == pytest.approx([0.3])


def test_the_more_was_asked_for_the_fewer_audit_answers_count():
    judged = [Judged(0.9 + i / 10_000, i > 0) for i in range(400)]
    rest = np.linspace(0.9, 0.94, 5000).tolist()
    accepted = [guarantee(judged, rest, 0.03, asked=share).accepted for share in (0, 0.1, 0.8)]

    assert accepted[0] >= accepted[1] > accepted[2] == 0
