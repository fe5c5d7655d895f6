"""A part of a sentence: the window that a policy scores highest, with no predicted span cut."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.spans import spans
from seqmix.errors import ConfigError
from seqmix.query.part import SentencePart, best_window, even
from seqmix.query.policies import POLICIES, combined
from seqmix.query.uncertainty import (
    entropies,
    least_confidence_sum,
    margin,
    mnlp,
    token_entropy,
)
from tests.support.pool_views import TAGS, distributions, make_view


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(
    length=st.integers(1, 20), size=st.integers(1, 25), seed=st.integers(0, 999), free=st.booleans()
)
def test_the_window_has_the_highest_scores_and_cuts_no_predicted_span(
    length: int, size: int, seed: int, free: bool
) -> None:
    scores = rng(seed).random(length)
    tags = ["O"] * length if free else [str(tag) for tag in rng(seed).choice(TAGS.tags, length)]

    start, end = best_window(scores, tags, size, rng())

    assert 0 <= start < end <= length and end - start >= min(size, length)
    for span in spans(tags):
        assert span.end <= start or span.start >= end or start <= span.start < span.end <= end
    if free or size >= length:
        assert end - start == min(size, length)
    highest = max(scores[at : at + size].sum() for at in range(max(1, length - size + 1)))
    assert any(
        scores[at : at + size].sum() == pytest.approx(highest)
        for at in range(start, max(start + 1, end - size + 1))
    )


def test_a_policy_that_scores_tokens_alike_asks_for_each_window_as_often() -> None:
    generator = rng()
    starts = Counter(
        best_window(even(np.zeros((7, 5))), ["O"] * 7, 3, generator)[0] for _ in range(2000)
    )

    assert set(starts) == {0, 1, 2, 3, 4}
    assert all(abs(count - 400) < 80 for count in starts.values())


@given(seed=st.integers(0, 999), length=st.integers(1, 9))
def test_the_scores_of_tokens_are_those_that_a_policy_sums_or_averages(
    seed: int, length: int
) -> None:
    rows = distributions(rng(seed), length)
    of = {name: policy.tokens(rows) for name, policy in POLICIES.items() if policy.tokens}

    assert set(of) == {"random", "lc_prime", "nte", "mnlp", "margin"}
    assert all(scores.shape == (length,) for scores in of.values())
    assert of["nte"].mean() == pytest.approx(token_entropy(rows))
    assert of["lc_prime"].sum() == pytest.approx(least_confidence_sum(rows))
    assert of["margin"].mean() == pytest.approx(margin(rows))
    view = make_view(1)
    path = tuple(TAGS.tags[at] for at in rows.argmax(axis=1))
    view.path = {"s0": (path, float(np.prod(rows.max(axis=1).astype(np.float64))))}
    assert of["mnlp"].mean() == pytest.approx(dict(mnlp(view))["s0"])


def test_combined_policies_still_score_tokens() -> None:
    policy = combined("nte", diverse=True, without_entity=0.2, tokens=9, apart=3)

    assert policy.tokens is entropies


def test_a_budget_counts_the_tokens_of_the_parts_and_skips_what_does_not_fit() -> None:
    part = SentencePart(2, budget=6)
    windows = {"a": (0, 3), "b": (1, 5), "c": (0, 2), "d": (0, 1), "e": (3, 4)}
    scores = {id: 1.0 - at / 10 for at, id in enumerate(windows)}

    assert list(part.within_budget(scores, windows)) == ["a", "c", "d"]
    assert list(SentencePart(2).within_budget(scores, windows)) == list(windows)


def test_the_parts_of_a_view_are_where_the_policy_is_least_sure() -> None:
    view = make_view(20)

    windows = SentencePart(2).windows(view, POLICIES["nte"], rng())

    assert list(windows) == view.ids
    for id, (start, end) in windows.items():
        at = int(entropies(view.p[id]).argmax())
        assert end - start == len(view.p[id]) or end - start >= 2
        if len(view.p[id]) <= 2:
            assert start <= at < end


@pytest.mark.parametrize(("size", "budget"), [(0, None), (-1, 5), (3, 0)])
def test_a_part_has_tokens(size: int, budget: int | None) -> None:
    with pytest.raises(ConfigError, match="at least 1 token"):
        SentencePart(size, budget)
