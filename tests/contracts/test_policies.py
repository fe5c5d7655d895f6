"""One suite for every query policy, and the proof that none escapes it."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqmix import query
from seqmix.protocols import Chosen
from seqmix.query.committee import BALD, VoteEntropy
from seqmix.query.diversity import Badge, CoreSet, Diverse, KMeans, diverse, random_order
from seqmix.query.history import Fluctuation
from seqmix.query.selection import Budget, WithoutEntity
from seqmix.query.uncertainty import (
    MNLP,
    LeastConfidence,
    TagCount,
    Uncertainty,
    least_confidence_sum,
    margin,
    token_entropy,
)
from tests.support.pool_views import FakeView, make_view, snapshot

PLENTY = 10**9  # tokens: a budget that never binds


def first_come(view: FakeView, n: int, rng: np.random.Generator) -> list[str]:
    """A user's plain function."""
    return [sentence.id for sentence in view.sentences()][:n]


POLICIES = {
    "random": random_order,
    "lc": LeastConfidence(),
    "lc_prime": Uncertainty(least_confidence_sum),
    "nte": Uncertainty(token_entropy),
    "margin": Uncertainty(margin),
    "mnlp": MNLP(),
    "tag_count": TagCount(),
    "qbc": VoteEntropy(),
    "bald": BALD(passes=4),
    "fluctuation": Fluctuation(),
    "kmeans": KMeans(),
    "kmeans of a sample": KMeans(sample=5),
    "coreset": CoreSet(),
    "coreset of a sample": CoreSet(sample=5),
    "badge": Badge(),
    "badge of a sample": Badge(sample=5),
    "diverse nte": diverse(Uncertainty()),
    "diverse function": diverse(first_come),
    "budget": Budget(Uncertainty(), PLENTY),
    "budget of a function": Budget(first_come, PLENTY),
    "without entity": WithoutEntity(Uncertainty(), 0.3),
    "without entity of a function": WithoutEntity(first_come, 0.3),
    "all of it": Budget(WithoutEntity(diverse(TagCount()), 0.2), PLENTY),
    "function": first_come,
}
every_policy = pytest.mark.parametrize("name", POLICIES)


def public() -> Iterator[tuple[str, object]]:
    for module in pkgutil.iter_modules(query.__path__, query.__name__ + "."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if (
                not name.startswith("_")
                and getattr(value, "__module__", None) == module.name
                and callable(value)
            ):
                yield name, value


def is_policy(value: object) -> bool:
    call = value.__dict__.get("__call__") if inspect.isclass(value) else value
    return call is not None and [
        name for name in inspect.signature(call).parameters if name != "self"
    ] == ["view", "n", "rng"]


def test_no_policy_escapes_this_suite() -> None:
    found = {value for _, value in public() if is_policy(value)}

    assert found >= {random_order, Uncertainty, Diverse, KMeans}
    assert found <= {
        policy if inspect.isfunction(policy) else type(policy) for policy in POLICIES.values()
    }


def test_no_score_and_no_combinator_escapes_this_suite() -> None:
    firsts = {
        value: next(iter(inspect.signature(value).parameters), "")
        for _, value in public()
        if inspect.isfunction(value)
    }

    assert {value for value, first in firsts.items() if first == "probs"} == {
        policy.score for policy in POLICIES.values() if hasattr(policy, "score")
    }
    assert {value.__name__ for value, first in firsts.items() if first == "policy"} == {
        "diverse",
        "ranked",
    }


@every_policy
@settings(max_examples=25)
@given(
    pool=st.integers(0, 14),
    n=st.integers(0, 20),
    seed=st.integers(0, 999),
    rounds=st.integers(0, 2),
)
def test_it_chooses_as_many_as_there_are_up_to_n_from_the_pool_and_none_twice(
    name: str, pool: int, n: int, seed: int, rounds: int
) -> None:
    view = make_view(pool, seed, rounds)
    before = snapshot(view)

    chosen = POLICIES[name](view, n, np.random.default_rng(seed))

    assert len(chosen) == len(set(chosen)) == min(n, pool)
    assert set(chosen) <= set(view.ids)
    assert snapshot(view) == before
    assert list(chosen) == list(POLICIES[name](view, n, np.random.default_rng(seed)))


@every_policy
def test_a_pool_of_one_and_a_pool_smaller_than_n(name: str) -> None:
    assert list(POLICIES[name](make_view(1), 1, np.random.default_rng(0))) == ["s0"]
    assert sorted(POLICIES[name](make_view(3), 100, np.random.default_rng(0))) == ["s0", "s1", "s2"]


@pytest.mark.parametrize("name", sorted(POLICIES.keys() - {"function"}))
@settings(max_examples=25)
@given(seed=st.integers(0, 999), n=st.integers(1, 20))
def test_ids_come_with_finite_scores_that_never_rise(name: str, seed: int, n: int) -> None:
    chosen = POLICIES[name](make_view(14, seed), n, np.random.default_rng(seed))

    scores = [chosen.scores[id] for id in chosen]
    assert isinstance(chosen, Chosen) and len(chosen.scores) == len(chosen)
    assert all(type(score) is float and np.isfinite(score) for score in scores)
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("name", sorted(name for name in POLICIES if "function" not in name))
@settings(max_examples=25)
@given(seed=st.integers(0, 999), order=st.integers(0, 999))
def test_the_order_of_the_pool_changes_neither_scores_nor_choice(
    name: str, seed: int, order: int
) -> None:
    view = make_view(14, seed)

    chosen = POLICIES[name](view, 5, np.random.default_rng(seed))
    again = POLICIES[name](view.shuffled(order), 5, np.random.default_rng(seed))

    assert list(again) == list(chosen) and again.scores == chosen.scores


@every_policy
def test_it_survives_pickling_and_says_what_it_is(name: str) -> None:
    policy = POLICIES[name]

    assert pickle.loads(pickle.dumps(policy)) == policy
    assert inspect.isfunction(policy) or repr(policy).startswith(type(policy).__name__ + "(")
