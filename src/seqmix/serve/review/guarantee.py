"""Which open sentences a model may answer alone, at an error rate that holds.

The audit answers are a random sample, so errors among those the model is sure of say how many there
are among the open sentences it is as sure of. Thresholds of confidence are tested from strict to
lax (Learn then Test, arXiv 2110.01052) with an exact test, and the last that passes is taken: with
the probability `LEVEL`, at most the share `alpha` of what is accepted is wrong, whatever the model.

    an error: any tag of the sentence differs from what a person would answer
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

LEVEL = 0.95  # how often the guarantee holds
_STEP = 0.05  # share of all sentences by which thresholds are apart
_ALLOWED = 1  # errors that the strictest threshold may have; with 0, chance would decide too often
_STEPS = 25  # of Newton's method
# why nothing may be accepted: too few open sentences, too few audit answers, too many of them wrong
FEW_OPEN, FEW_ANSWERS, MANY_ERRORS = "few open", "few answers", "many errors"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """An audit answer: how sure the model is of its tagging, and whether that is right."""

    confidence: float
    right: bool


@dataclass(frozen=True)
class Guarantee:
    """What may be accepted at an error rate of at most `alpha`."""

    alpha: float
    threshold: float | None  # the least confidence; None: nothing may be accepted
    accepted: int  # open sentences that reach it
    open: int
    audits: int  # audit answers that reach it, or the threshold at which too many are wrong
    errors: int  # of these, wrong
    answered: int  # audit answers in all
    expected: float  # share of errors that the calibrated confidence expects in what is accepted
    lost: int = 0  # audit answers that say nothing about the open sentences
    why: str = ""  # nothing may be accepted: FEW_OPEN, FEW_ANSWERS or MANY_ERRORS


def guarantee(
    audit: Sequence[Judged],
    open_confidences: Sequence[float],
    alpha: float,
    level: float = LEVEL,
    asked: float = 0.0,
) -> Guarantee:
    """Return the laxest threshold behind which the error rate is at most `alpha`.

    A model asked for the share `asked` of the sentences that are not audited, so the open ones lack
    them. As many audit answers are of their kind and say nothing about the open ones: that many are
    taken off those that reach a threshold, as if all of them did and were right.
    """
    lost = math.ceil(asked * len(audit))
    sorted_audit = sorted(audit, key=lambda judged: -judged.confidence)
    sure = np.array([judged.confidence for judged in sorted_audit], dtype=np.float64)
    wrong = np.cumsum([not judged.right for judged in sorted_audit])
    pool = np.sort(np.asarray(open_confidences, dtype=np.float64))
    passed: tuple[float | None, int, int, int] = (None, 0, 0, 0)
    began, why = False, FEW_OPEN if len(pool) * alpha < 1 else FEW_ANSWERS
    for threshold in _thresholds(np.concatenate([sure, pool])):
        n = int((sure >= threshold).sum())
        size = len(pool) - int(np.searchsorted(pool, threshold))
        began = began or p_value(max(0, n - lost), _ALLOWED, size, alpha) <= 1 - level
        if not began:
            continue
        errors = int(wrong[n - 1])
        if p_value(max(0, n - lost), errors, size, alpha) > 1 - level:
            if passed[0] is None:
                passed, why = (None, 0, n, errors), MANY_ERRORS
            break
        passed, why = (threshold, size, n, errors), ""
    lowest, accepted, n, errors = passed
    calibrated = calibration(audit)(pool[len(pool) - accepted :])
    expected = float(1 - calibrated.mean()) if accepted else 0.0
    counts = (accepted, len(pool), n, errors, len(audit))
    return Guarantee(alpha, lowest, *counts, expected, lost, why)


def _thresholds(confidences: Floats) -> list[float]:
    """Return thresholds from strict to lax.

    subtle: they are of the audit answers and the open sentences together, and depend on no answer,
    so that above each of them the audit answers still are a random sample.
    """
    falling, n = np.sort(confidences)[::-1], len(confidences)
    places = (round(n * _STEP * step) for step in range(1, round(1 / _STEP) + 1))
    return [float(falling[place - 1]) for place in dict.fromkeys(places) if place]


def p_value(n: int, errors: int, size: int, alpha: float) -> float:
    """Return how likely so few errors in a sample are if there are too many in the whole.

    `n` audit answers were drawn at random from these and `size` open sentences. Too many are more
    than `alpha * size` errors in all. In a large pool it is the binomial test, and its limit the
    bound of Clopper and Pearson.
    """
    everything, bad = n + size, math.floor(alpha * size) + 1
    if bad > everything or not n:
        return 1.0
    drawn = np.arange(max(0, n - (everything - bad)), min(errors, bad, n) + 1)
    if not len(drawn):
        return 0.0
    chosen = _log_choose(bad, drawn) + _log_choose(everything - bad, n - drawn)
    return float(min(1.0, np.exp(chosen - _log_choose(everything, np.array(n))).sum()))


def _log_choose(n: int, k: NDArray[np.int64]) -> Floats:
    log: Floats = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return log


def least_audits(alpha: float, size: int = 10**9, level: float = LEVEL) -> int:
    """Return how many audit answers at a threshold it takes, with one error, for `size` others."""
    most = 1
    while p_value(most, _ALLOWED, size, alpha) > 1 - level and most < 10**9:
        most *= 2
    few = most // 2
    while most - few > 1:
        n = (few + most) // 2
        few, most = (few, n) if p_value(n, _ALLOWED, size, alpha) <= 1 - level else (n, most)
    return most


def calibration(audit: Sequence[Judged]) -> Callable[[Floats], Floats]:
    """Return a map from confidence to how often the model is right, fitted on the audit answers.

    It is Platt's: a logistic curve over the log odds of the confidence, with his priors.
    """
    right = np.array([judged.right for judged in audit], dtype=np.float64)
    if not len(right):
        return lambda confidences: np.asarray(confidences, dtype=np.float64)
    target = np.where(
        right > 0, (right.sum() + 1) / (right.sum() + 2), 1 / (len(right) - right.sum() + 2)
    )
    x = _log_odds(np.array([judged.confidence for judged in audit], dtype=np.float64))
    weights = _logistic(np.stack([x, np.ones_like(x)], axis=1), target)
    weights[0] = max(weights[0], 0.0)  # more confidence never means less

    def calibrated(confidences: Floats) -> Floats:
        log_odds = _log_odds(np.asarray(confidences, dtype=np.float64))
        p: Floats = special.expit(log_odds * weights[0] + weights[1])
        return p

    return calibrated


def _logistic(design: Floats, target: Floats) -> Floats:
    """Return the weights of a logistic regression; a trace of a prior keeps them finite."""
    prior = np.array([1.0, 0.0])

    def loss(weights: Floats) -> float:
        score = design @ weights
        fit = np.logaddexp(0, score) - target * score
        return float(fit.sum() + 5e-4 * ((weights - prior) ** 2).sum())

    weights = prior
    for _ in range(_STEPS):
        p = special.expit(design @ weights)
        curved = design.T @ (design * (p * (1 - p))[:, None]) + 1e-3 * np.eye(2)
        step = np.linalg.solve(curved, design.T @ (p - target) + 1e-3 * (weights - prior))
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-9:
            step = step / 2
        weights = weights - step
    return weights


def _log_odds(confidences: Floats) -> Floats:
    odds: Floats = special.logit(np.clip(confidences, 1e-9, 1 - 1e-9))
    return odds
