"""Conditions on a policy: tokens and entity-free sentences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.errors import ConfigError
from seqmix.query.policies import POLICIES
from seqmix.query.selection import Budget, PoolPart, WithoutEntity
from tests.support.pool_views import FakeView, make_view

NTE = POLICIES["nte"]
INNER = st.sampled_from(
    [POLICIES[name] for name in ("nte", "lc_prime", "lc", "tag_count", "qbc", "random")]
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def free(view: FakeView, ids: list[str]) -> list[str]:
    return [id for id in ids if set(view.path[id][0]) == {"O"}]


@given(policy=INNER, seed=st.integers(0, 99), tokens=st.integers(1, 60), n=st.integers(1, 30))
def test_a_budget_is_never_exceeded_and_never_left_for_want_of_trying(
    policy, seed: int, tokens: int, n: int
) -> None:
    view = make_view(20, seed)
    length = {sentence.id: len(sentence) for sentence in view.pool}

    chosen = Budget(policy, tokens)(view, n, rng(seed))
    spent = sum(length[id] for id in chosen)

    assert spent <= tokens and len(chosen) <= n
    if n >= 20:
        assert all(length[id] > tokens - spent for id in view.ids if id not in chosen)


def test_a_budget_takes_the_best_first_and_passes_over_what_does_not_fit() -> None:
    view = make_view(20, 3)
    length = {sentence.id: len(sentence) for sentence in view.pool}
    expected, left = [], 17
    for id in NTE.choose(view, 20, rng()):
        if length[id] <= left:
            expected.append(id)
            left -= length[id]

    assert list(Budget(NTE, 17)(view, 20, rng())) == expected


def test_a_sentence_longer_than_the_budget_does_not_block_it() -> None:
    view = make_view(20)
    longest = max(view.pool, key=len)
    view.p[longest.id] = np.full((len(longest), 5), 0.2, np.float32)  # and the most wanted
    tokens = len(longest) - 1

    chosen = Budget(NTE, tokens)(view, 1, rng())

    assert len(chosen) == 1 and len(view.p[next(iter(chosen))]) <= tokens


@given(policy=INNER, seed=st.integers(0, 99), share=st.floats(0, 1), n=st.integers(1, 25))
def test_the_quota_is_kept_as_far_as_the_pool_allows(
    policy, seed: int, share: float, n: int
) -> None:
    view = make_view(20, seed)

    chosen = WithoutEntity(policy, share)(view, n, rng(seed))

    assert len(set(chosen)) == len(chosen) == min(n, 20)
    assert len(free(view, chosen)) >= min(round(share * n), len(free(view, view.ids)))


def test_the_quota_holds_the_best_of_the_entity_free_and_the_rest_the_best_of_all() -> None:
    view = make_view(40, 1)
    for id in free(view, view.ids):
        view.p[id] = np.eye(5, dtype=np.float32)[[0] * len(view.p[id])] * 0.9 + np.float32(
            0.02
        )  # never chosen by doubt alone
    wanted = NTE.choose(view, 10, rng())
    assert not free(view, wanted)

    chosen = WithoutEntity(NTE, 0.3)(view, 10, rng())

    assert len(free(view, chosen)) == 3 and set(list(wanted)[:7]) < set(chosen)


def test_a_quota_that_the_policy_fills_by_itself_changes_nothing() -> None:
    view = make_view(30, 2)
    wanted = NTE.choose(view, 10, rng())
    share = len(free(view, wanted)) / 10

    assert share > 0 and WithoutEntity(NTE, share)(view, 10, rng()) == wanted


def test_an_empty_part_of_the_pool_gives_nothing() -> None:
    view = make_view(5)
    nothing = PoolPart(view, lambda view: (False for _ in view.sentences()))

    for policy in POLICIES.values():
        assert policy.choose(nothing, 3, rng()) == {}


def test_a_part_shows_the_same_sentences_everywhere() -> None:
    view = make_view(10)
    part = PoolPart(view, lambda view: (len(sentence) > 3 for sentence in view.sentences()))
    ids = [sentence.id for sentence in view.pool if len(sentence) > 3]

    assert [sentence.id for sentence in part.sentences()] == ids and 0 < len(ids) < 10
    for pairs in (part.probs(), part.paths(), part.embeddings(), part.votes(), part.dropped(2)):
        assert [id for id, *_ in pairs] == ids
    assert (
        part.labeled_embeddings() is view.labeled
        and part.history() is view.past
        and part.tag_set is view.tag_set
    )


def test_settings_at_the_ends_of_their_range_are_taken() -> None:
    view = make_view(5)

    assert len(Budget(NTE, 1)(view, 5, rng())) <= 1
    assert WithoutEntity(NTE).share == 0.1
    assert WithoutEntity(NTE, 0)(view, 3, rng()) == NTE.choose(view, 3, rng())
    assert len(WithoutEntity(NTE, 1)(view, 3, rng())) == 3


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 token; got 0"):
        Budget(NTE, 0)
    with pytest.raises(ConfigError, match=r"got 1\.5"):
        WithoutEntity(NTE, 1.5)
    with pytest.raises(ConfigError, match=r"got -0\.1"):
        WithoutEntity(NTE, -0.1)
