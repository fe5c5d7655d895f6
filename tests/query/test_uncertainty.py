"""Scores equal the paper's formulas, written out; ranking streams, and only chance breaks ties."""

from __future__ import annotations

import math
import tracemalloc
import weakref
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.query.diversity import random_scores
from seqmix.query.spec import PolicySpec, lots, top
from seqmix.query.uncertainty import (
    Reweighted,
    Uncertainty,
    lc,
    least_confidence_sum,
    margin,
    mnlp,
    tag_count,
    token_entropy,
)
from seqmix.testing import WordTagger
from tests.support.pool_views import FakeView, choose, distributions, make_view

SCORES = (token_entropy, least_confidence_sum, margin)
probs_strategy = st.builds(
    lambda seed, length: distributions(np.random.default_rng(seed), length),
    st.integers(0, 9999),
    st.integers(1, 12),
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def viewing(paths: dict[str, tuple[tuple[str, ...], float]]) -> FakeView:
    return FakeView(
        [Sentence(id, ("w",) * len(tags)) for id, (tags, _) in paths.items()], path=paths
    )


@given(probs=probs_strategy)
def test_token_entropy_is_equation_3(probs: np.ndarray) -> None:
    total = 0.0
    for t in range(len(probs)):
        for p in map(float, probs[t]):
            total += p * math.log(p) if p > 0 else 0.0

    assert token_entropy(probs) == pytest.approx(-total / len(probs), abs=1e-12)


@given(probs=probs_strategy)
def test_the_sum_of_least_confidence_is_equation_2(probs: np.ndarray) -> None:
    assert least_confidence_sum(probs) == pytest.approx(
        sum(1 - max(map(float, row)) for row in probs), abs=1e-12
    )


@given(probability=st.floats(0, 1))
def test_least_confidence_is_equation_1(probability: float) -> None:
    assert list(lc(viewing({"a": (("O",), probability)}))) == [("a", 1 - probability)]


@given(probs=probs_strategy)
def test_margin_compares_the_two_best_tags(probs: np.ndarray) -> None:
    expected = 0.0
    for row in probs:
        second, first = sorted(map(float, row))[-2:]
        expected += 1 - (first - second)

    assert margin(probs) == pytest.approx(expected / len(probs), abs=1e-12)


def test_the_margin_of_two_tags_is_what_parts_them() -> None:
    assert margin(np.array([[0.6, 0.4], [0.9, 0.1]])) == pytest.approx((0.8 + 0.2) / 2)


@given(probability=st.floats(1e-300, 1), length=st.integers(1, 30))
def test_mnlp_is_the_log_probability_of_the_path_by_length(probability: float, length: int) -> None:
    ((_, score),) = mnlp(viewing({"a": (("O",) * length, probability)}))

    assert score == pytest.approx(-math.log(probability) / length)


def test_mnlp_survives_a_probability_that_underflowed() -> None:
    assert math.isfinite(dict(mnlp(viewing({"a": (("O",) * 900, 0.0)})))["a"])


def test_tag_count_counts_valid_tags() -> None:
    paths = {
        "none": (("O", "O"), 0.5),
        "one": (("O", "B-PER"), 0.5),
        "two": (("B-PER", "I-PER"), 0.5),
    }

    assert choose(tag_count, viewing(paths), 2, rng()) == {"two": 2, "one": 1}


@pytest.mark.parametrize("score", SCORES)
def test_certainty_scores_zero_and_doubt_more(score) -> None:
    certain, even = np.eye(4, dtype=np.float32)[[0, 2]], np.full((2, 4), 0.25, np.float32)

    assert score(certain) == pytest.approx(0) and score(even) > 0.5


@pytest.mark.parametrize("score", SCORES)
def test_a_tag_set_of_one_leaves_no_doubt(score) -> None:
    assert score(np.ones((3, 1), np.float32)) == pytest.approx(0)


@given(
    scores=st.lists(st.integers(-3, 3), max_size=40), n=st.integers(0, 50), seed=st.integers(0, 99)
)
def test_the_top_is_what_sorting_gives(scores: list[int], n: int, seed: int) -> None:
    lot = lots(rng(seed))
    pairs = [(f"s{i}", float(score)) for i, score in enumerate(scores)]

    chosen = top(iter(pairs), n, rng(seed))

    assert list(chosen) == [
        id for id, _ in sorted(pairs, key=lambda pair: (pair[1], lot(pair[0])), reverse=True)[:n]
    ]
    assert chosen == {id: dict(pairs)[id] for id in chosen}


@given(seed=st.integers(0, 99), order=st.integers(0, 99))
def test_even_ties_fall_the_same_way_in_any_order_of_the_pool(seed: int, order: int) -> None:
    pairs = [(f"s{i}", float(i % 3)) for i in range(30)]
    mixed = [pairs[i] for i in rng(order).permutation(30)]

    assert list(top(pairs, 15, rng(seed))) == list(top(mixed, 15, rng(seed)))


def test_ties_are_broken_by_the_generator_and_favor_nobody() -> None:
    firsts = Counter(
        next(iter(top([(id, 1.0) for id in "abcde"], 1, rng(seed)))) for seed in range(2000)
    )

    assert len(firsts) == 5 and min(firsts.values()) > 330 and max(firsts.values()) < 470


def test_two_queries_of_one_generator_break_ties_differently() -> None:
    generator, pairs = rng(), [(f"s{i}", 1.0) for i in range(50)]

    assert list(top(pairs, 50, generator)) != list(top(pairs, 50, generator))


def test_lots_lie_between_0_and_1_and_are_spread_evenly() -> None:
    lot = lots(rng())
    drawn = [lot(f"s{i}") for i in range(2000)]

    assert all(0 <= number < 1 for number in drawn) and len(set(drawn)) == 2000
    assert [sum(k <= 4 * number < k + 1 for number in drawn) for k in range(4)] == pytest.approx(
        [500] * 4, abs=80
    )


def test_a_score_that_is_no_number_is_an_error_that_names_the_sentence() -> None:
    with pytest.raises(ModelError, match="'bad' is not a number"):
        top([("good", 1.0), ("bad", float("nan"))], 1, rng())


def test_a_plain_list_of_ids_is_scored_by_its_order() -> None:
    policy = PolicySpec(selector=lambda view, n, rng: ["b", "a", "b", "c"])

    assert list(policy.choose(make_view(1), 2, rng()).items()) == [("b", 0), ("a", -1)]


@given(seed=st.integers(0, 999), order=st.integers(0, 999), n=st.integers(1, 12))
def test_scores_belong_to_the_right_ids_under_any_shuffling(seed: int, order: int, n: int) -> None:
    view = make_view(12, seed)

    chosen = choose(Uncertainty(), view.shuffled(order), n, rng())

    assert chosen == {id: token_entropy(view.p[id]) for id in chosen}
    assert list(chosen) == sorted(view.p, key=lambda id: -token_entropy(view.p[id]))[:n]


class Endless(FakeView):
    """A pool of any size that is made while it is read, and counts how many arrays are alive."""

    size, alive, most = 0, 0, 0

    def probs(self) -> Iterator[tuple[str, np.ndarray]]:
        generator = rng()
        for i in range(self.size):
            probs = distributions(generator, 2)
            self.alive, self.most = self.alive + 1, max(self.most, self.alive + 1)
            weakref.finalize(probs, self._gone)
            yield f"s{i}", probs
            del probs

    def _gone(self) -> None:
        self.alive -= 1

    def sentences(self) -> Iterator[Sentence]:
        return (Sentence(f"s{i}", ("w",)) for i in range(self.size))


def test_scoring_holds_a_few_arrays_at_a_time() -> None:
    view = Endless([])
    view.size = 2000

    assert len(choose(Uncertainty(), view, 50, rng())) == 50
    assert view.most <= 3


def test_memory_does_not_grow_with_the_pool() -> None:
    def peak(size: int) -> int:
        tracemalloc.start()
        top(((f"s{i}", (i * 7919 % 104729) / 104729) for i in range(size)), 100, rng())
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1000)
    assert peak(200_000) < peak(2000) + 20_000


def test_a_random_order_streams_too() -> None:
    view = Endless([])
    view.size = 20_000
    tracemalloc.start()

    top(random_scores(view), 100, rng())

    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 200_000


def test_rare_tags_weigh_more_in_a_reweighted_score() -> None:
    even = np.full(5, 0.1)
    common, rare = (np.array([even, even]) for _ in range(2))
    common[:, 0] = rare[:, 2] = 0.6  # O and B-PER
    view = FakeView(
        [Sentence("common", ("w", "w")), Sentence("rare", ("w", "w"))],
        p={"common": common, "rare": rare},
        tags=Counter({"O": 90, "B-PER": 10}),
    )
    scores = dict(Reweighted(0.1)(view))
    entropy = token_entropy(common)

    assert scores["common"] == pytest.approx(entropy * 100 / (90 + 10))
    assert scores["rare"] == pytest.approx(entropy * 100 / (10 + 10))
    assert dict(Reweighted()(FakeView(view.pool, view.p)))["rare"] == pytest.approx(10 * entropy)


def test_tags_of_labeled_sentences_are_counted() -> None:
    labeled = [Sentence("1", ("a", "b", "c"), ("B-PER", {"O": 0.9, "B-LOC": 0.1}, None))]
    pool = Pool({"2": Sentence("2", ("d",))}, {s.id: s for s in labeled})
    tagger = WordTagger().fit([Sentence("1", ("a", "b"), ("B-PER", "O"))])
    view = TaggerView(pool, tagger, lambda: (), {}, rng())

    assert view.labeled_tags() == {"B-PER": 1, "O": 1}
