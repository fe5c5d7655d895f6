"""Diversity in geometries small enough to see the answer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.query.diversity import Badge, CoreSet, Diverse, KMeans, random_scores
from seqmix.query.geometry import farthest, means, nearest, plus_plus, squared
from seqmix.query.policies import POLICIES, policy_spec
from seqmix.query.uncertainty import token_entropy
from tests.support.pool_views import TAGS, FakeView, choose, make_view

NTE = POLICIES["nte"]
CORNERS = np.array([[0, 0], [100, 0], [0, 100], [100, 100]], np.float32)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def clusters(sizes: tuple[int, ...] = (8, 8, 8, 8), seed: int = 0) -> FakeView:
    """Tight clusters in the corners of a square; the tagger is unsure of corner 0 above all.

    Ids are `corner.number`.
    """
    view, generator = FakeView([], labeled=np.zeros((0, 2), np.float32)), rng(seed)
    for corner, size in enumerate(sizes):
        for i in range(size):
            id = f"{corner}.{i}"
            view.pool.append(Sentence(id, ("w",)))
            view.vectors[id] = (CORNERS[corner] + generator.normal(size=2)).astype(np.float32)
            doubt = 0.9 / (1 + corner) - 0.01 * i
            view.p[id] = np.array([[1 - doubt * 0.8, *[doubt * 0.2] * 4]], np.float32)
    return view


def corners(chosen: list[str]) -> list[str]:
    return sorted(id[0] for id in chosen)


@given(seed=st.integers(0, 50))
def test_k_means_finds_every_cluster_and_asks_for_the_sentence_in_its_middle(seed: int) -> None:
    view = clusters((9, 7, 5, 3))

    chosen = KMeans()(view, 4, rng(seed))

    assert corners(chosen) == ["0", "1", "2", "3"]
    assert list(chosen.values()) == pytest.approx([9 / 24, 7 / 24, 5 / 24, 3 / 24])
    for id in chosen:
        own = {other: vector for other, vector in view.vectors.items() if other[0] == id[0]}
        middle = np.mean(list(own.values()), axis=0)
        assert id == min(own, key=lambda other: float(((own[other] - middle) ** 2).sum()))


def test_k_means_of_a_large_pool_clusters_a_sample_and_chooses_real_sentences() -> None:
    view = clusters((60, 60, 60, 60))

    chosen = KMeans(sample=40)(view, 4, rng())

    assert corners(chosen) == ["0", "1", "2", "3"] and set(chosen) <= set(view.ids)
    assert len(KMeans(sample=3)(view, 50, rng())) == 50


def test_a_pool_of_up_to_twenty_thousand_is_looked_at_whole() -> None:
    assert KMeans().sample == CoreSet().sample == Badge().sample == 20_000 and KMeans().steps == 20


def test_copies_are_chosen_no_more_than_once_each() -> None:
    view = make_view(20)
    view.vectors = dict.fromkeys(view.ids, np.ones(6, np.float32))

    for policy in (KMeans(), CoreSet(), Badge(), Diverse(NTE)):
        assert len(set(policy(view, 10, rng()))) == 10


def test_the_core_set_goes_where_no_label_is() -> None:
    view = clusters()
    view.labeled = CORNERS[[0, 3]]

    chosen = CoreSet()(view, 2, rng())

    assert corners(chosen) == ["1", "2"]
    assert (
        list(chosen.values()) == sorted(chosen.values(), reverse=True) and min(chosen.values()) > 90
    )


def test_the_core_set_without_labels_still_spreads() -> None:
    assert corners(CoreSet()(clusters(), 4, rng())) == ["0", "1", "2", "3"]


@given(seed=st.integers(0, 999), n=st.integers(1, 11))
def test_k_center_picks_the_farthest_each_time(seed: int, n: int) -> None:
    rows = rng(seed).normal(size=(12, 3)).astype(np.float32)
    picked = farthest(rows, squared(rows, rows[0]), n, taken=(0,))

    before = [0]
    for i, distance in picked:
        gaps = [min(float(np.linalg.norm(row - rows[j])) for j in before) for row in rows]
        assert distance == pytest.approx(max(gaps), rel=1e-4) and gaps[i] == pytest.approx(
            max(gaps), rel=1e-4
        )
        before.append(i)


@given(seed=st.integers(0, 999))
def test_nearest_is_what_comparing_all_gives(seed: int) -> None:
    rows, centers = (
        rng(seed).normal(size=(30, 4)).astype(np.float32),
        rng(seed + 1).normal(size=(5, 4)).astype(np.float32),
    )
    every = np.stack([squared(rows, center) for center in centers], axis=1)

    at, away = nearest(rows, centers)

    assert every[np.arange(30), at] == pytest.approx(
        every.min(axis=1), rel=1e-4
    ) and away == pytest.approx(every.min(axis=1), rel=1e-4)


def test_nearest_leaves_out_no_row_of_a_pool_that_takes_several_parts() -> None:
    rows, centers = (
        rng(5).normal(size=(2500, 2)).astype(np.float32),
        np.array([[-1, 0], [1, 0]], np.float32),
    )

    at, away = nearest(rows, centers)

    assert at.tolist() == [int(x > 0) for x in rows[:, 0]]
    assert away == pytest.approx(((rows - centers[at]) ** 2).sum(axis=1), rel=1e-4)


def test_k_means_goes_on_until_no_sentence_changes_its_cluster() -> None:
    view = make_view(60)

    after = {
        steps: [KMeans(steps=steps)(view, 6, rng(seed)) for seed in range(5)]
        for steps in (1, 20, 90)
    }

    assert after[1] != after[20] == after[90]


def test_a_cluster_moves_to_its_mean_and_an_empty_one_stays() -> None:
    rows, centers = (
        np.array([[0, 2], [2, 4], [9, 9]], np.float32),
        np.array([[0, 0], [5, 5], [8, 8]], np.float32),
    )

    assert means(rows, np.array([0, 0, 2]), centers).tolist() == [[1, 3], [5, 5], [9, 9]]


def test_k_means_plus_plus_draws_with_the_squared_distance_as_weight() -> None:
    rows = np.array([[0.0], [1.0], [3.0]], np.float32)
    drawn = Counter(
        plus_plus(lambda i: squared(rows, rows[i]), 0, 2, rng(seed))[1] for seed in range(2000)
    )

    assert set(drawn) == {1, 2} and drawn[1] / 2000 == pytest.approx(0.1, abs=0.03)


def test_k_means_plus_plus_draws_as_many_as_it_is_asked_for() -> None:
    rows = np.arange(400, dtype=np.float32)[:, None]

    assert len(set(plus_plus(lambda i: squared(rows, rows[i]), 0, 300, rng()))) == 300


def test_k_means_plus_plus_draws_no_row_twice_even_if_rounding_sets_it_apart_from_itself() -> None:
    assert sorted(plus_plus(lambda i: np.full(9, 1e-9), 3, 9, rng())) == list(range(9))


def test_badge_measures_the_outer_product_and_starts_from_the_longest() -> None:
    view = make_view(12)
    length = {}
    for id in view.ids:
        error = np.mean([row - np.eye(len(TAGS))[row.argmax()] for row in view.p[id]], axis=0)
        length[id] = float(np.linalg.norm(np.outer(view.vectors[id], error)))

    for seed in range(20):
        chosen = Badge()(view, 2, rng(seed))

        assert chosen == pytest.approx({id: length[id] for id in chosen}, rel=1e-4)
        assert next(iter(chosen)) == max(length, key=length.__getitem__)


def test_badge_does_not_draw_copies_of_a_gradient() -> None:
    view = clusters((5, 0, 0, 5))
    for id in view.ids:
        view.vectors[id] = CORNERS[int(id[0])] + 1
        view.p[id] = np.array([[0.6, 0.4, 0, 0, 0]], np.float32)

    for seed in range(20):
        assert corners(Badge()(view, 2, rng(seed))) == ["0", "3"]


def test_diverse_asks_in_every_cluster_where_plain_doubt_asks_for_near_copies() -> None:
    view = clusters()

    assert corners(NTE.choose(view, 4, rng())) == ["0", "0", "0", "0"]
    chosen = Diverse(NTE, factor=8)(view, 4, rng())
    assert corners(chosen) == ["0", "1", "2", "3"]
    assert next(iter(chosen)) == next(iter(NTE.choose(view, 1, rng())))
    assert chosen == {id: token_entropy(view.p[id]) for id in chosen}


def test_diverse_looks_at_four_times_as_many_as_are_asked_for_or_at_all() -> None:
    asked = []

    def selector(view, n: int, rng):
        asked.append(n)
        return sorted(view.ids)[:n]

    policy = policy_spec(selector)

    view = clusters((3, 3, 0, 0))

    assert len(Diverse(policy)(view, 1, rng())) == 1 and asked == [4]
    assert list(Diverse(policy)(view, 9, rng())) == sorted(view.ids)
    assert list(Diverse(policy, factor=1)(view, 2, rng())) == sorted(view.ids)[:2]


def test_diverse_keeps_to_the_best_of_the_policy_and_takes_plain_functions() -> None:
    view = clusters()

    assert set(Diverse(NTE, factor=2)(view, 4, rng())) <= set(NTE.choose(view, 8, rng()))
    assert corners(
        Diverse(policy_spec(lambda view, n, rng: sorted(view.ids)[:n]), factor=8)(view, 4, rng())
    ) == ["0", "1", "2", "3"]
    with pytest.raises(ConfigError, match="got 0"):
        Diverse(NTE, factor=0)


@settings(max_examples=25)
@given(seed=st.integers(0, 999), order=st.integers(0, 999))
def test_the_order_of_the_pool_changes_nothing(seed: int, order: int) -> None:
    view = make_view(30, seed)

    for policy in (KMeans(), KMeans(sample=12), CoreSet(sample=12), Badge(), Diverse(NTE)):
        there, shuffled = policy(view, 6, rng(seed)), policy(view.shuffled(order), 6, rng(seed))
        assert list(shuffled.items()) == list(there.items())


def test_a_random_order_favors_nobody() -> None:
    view = make_view(6)
    counts = Counter(id for seed in range(1000) for id in choose(random_scores, view, 2, rng(seed)))

    assert all(270 < counts[id] < 400 for id in view.ids)
