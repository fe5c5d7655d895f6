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
from seqmix.errors import ConfigError
from seqmix.query.committee import BALD
from seqmix.query.diversity import Badge, CoreSet, KMeans
from seqmix.query.policies import POLICIES as TABLE
from seqmix.query.policies import combined, policy_spec
from seqmix.query.spec import PolicySpec
from tests.support.pool_views import FakeView, choose, make_view, snapshot

PLENTY = 10**9  # tokens: a budget that never binds


def first_come(view: FakeView, n: int, rng: np.random.Generator) -> list[str]:
    """A user's plain function."""
    return [sentence.id for sentence in view.sentences()][:n]


POLICIES = {
    **TABLE,
    "bald": PolicySpec(BALD(passes=4)),
    "kmeans of a sample": PolicySpec(selector=KMeans(sample=5)),
    "coreset of a sample": PolicySpec(selector=CoreSet(sample=5)),
    "badge of a sample": PolicySpec(selector=Badge(sample=5)),
    "diverse nte": combined("nte", diverse=True),
    "diverse function": combined(first_come, diverse=True),
    "templates apart": combined("nte", apart=5),
    "templates of a function apart": combined(first_come, apart=5),
    "budget": combined("nte", tokens=PLENTY),
    "budget of a function": combined(first_come, tokens=PLENTY),
    "without entity": combined("nte", without_entity=0.3),
    "without entity of a function": combined(first_come, without_entity=0.3),
    "all of it": combined("tag_count", diverse=True, without_entity=0.2, tokens=PLENTY),
    "function": policy_spec(first_come),
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


def parameters(value: object) -> list[str]:
    call = value.__dict__.get("__call__") if inspect.isclass(value) else value
    return [] if call is None else [n for n in inspect.signature(call).parameters if n != "self"]


def parts(policy: PolicySpec) -> Iterator[object]:
    """The score or selector of a policy, and of those it is made of, as functions and classes."""
    part = policy.score or policy.selector
    yield part if inspect.isfunction(part) else type(part)
    if isinstance(inner := getattr(part, "policy", None), PolicySpec):
        yield from parts(inner)


def test_no_score_and_no_selector_escapes_this_suite() -> None:
    shapes = (["view"], ["view", "n", "rng"])
    written = {
        value for name, value in public() if parameters(value) in shapes and value is not PolicySpec
    }

    assert written >= {KMeans, BALD}
    assert written <= {part for policy in POLICIES.values() for part in parts(policy)}


def test_no_measure_of_a_sentence_escapes_this_suite() -> None:
    measures = {value for _, value in public() if parameters(value)[:1] == ["probs"]}

    assert measures == {
        policy.score.measure for policy in POLICIES.values() if hasattr(policy.score, "measure")
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

    chosen = choose(POLICIES[name], view, n, np.random.default_rng(seed))

    assert len(chosen) == len(set(chosen)) == min(n, pool)
    assert set(chosen) <= set(view.ids)
    assert snapshot(view) == before
    again = choose(POLICIES[name], view, n, np.random.default_rng(seed))
    assert list(again.items()) == list(chosen.items())


@every_policy
def test_a_pool_of_one_and_a_pool_smaller_than_n(name: str) -> None:
    assert list(POLICIES[name].choose(make_view(1), 1, np.random.default_rng(0))) == ["s0"]
    assert sorted(POLICIES[name].choose(make_view(3), 100, np.random.default_rng(0))) == [
        "s0",
        "s1",
        "s2",
    ]


@every_policy
@settings(max_examples=25)
@given(seed=st.integers(0, 999), n=st.integers(1, 20))
def test_ids_come_with_finite_scores_that_never_rise(name: str, seed: int, n: int) -> None:
    chosen = choose(POLICIES[name], make_view(14, seed), n, np.random.default_rng(seed))

    scores = list(chosen.values())
    assert all(type(score) is float and np.isfinite(score) for score in scores)
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("name", sorted(name for name in POLICIES if "function" not in name))
@settings(max_examples=25)
@given(seed=st.integers(0, 999), order=st.integers(0, 999))
def test_the_order_of_the_pool_changes_neither_scores_nor_choice(
    name: str, seed: int, order: int
) -> None:
    view = make_view(14, seed)

    chosen = choose(POLICIES[name], view, 5, np.random.default_rng(seed))
    again = choose(POLICIES[name], view.shuffled(order), 5, np.random.default_rng(seed))

    assert list(again.items()) == list(chosen.items())


@every_policy
def test_it_survives_pickling(name: str) -> None:
    policy = POLICIES[name]

    assert pickle.loads(pickle.dumps(policy)) == policy


def test_a_policy_scores_or_selects_and_says_what_it_needs() -> None:
    with pytest.raises(ConfigError, match="a score or a selector"):
        PolicySpec()
    with pytest.raises(ConfigError, match="not both"):
        PolicySpec(lambda view: iter(()), first_come)
    assert {name for name, policy in TABLE.items() if not policy.alone} == {
        "reweighted", "fluctuation", "kmeans", "coreset", "badge",
    }  # fmt: skip
    assert combined("fluctuation", diverse=True, tokens=9).needs == {"history"}
    assert (combined("nte", diverse=True).most, combined("coreset").most) == (300, 1000)
