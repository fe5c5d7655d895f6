"""The order of training: every sentence once an epoch, in batches of equal size.

The order is the same whatever lies in between.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.tagger.training.schedule import draw_batches
from seqmix.tagger.windows import Window


def texts(*numbers: int) -> list[list[Window]]:
    """Sentences of one window each, told apart by their pieces."""
    return [
        [Window(np.array([101, number, 102]), np.array([0]), np.array([1]))] for number in numbers
    ]


def stream(windows, size: int, total: int, seed: int) -> list[int]:
    return [i for batch in draw_batches(windows, size, total, seed) for i in batch]


@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 40), st.integers(0, 2**62))
def test_every_sentence_comes_once_an_epoch_in_batches_of_equal_size(n, size, total, seed):
    batches = list(draw_batches(texts(*range(n)), size, total, seed))

    assert [len(batch) for batch in batches] == [min(n, size)] * total
    seen = [i for batch in batches for i in batch]
    for start in range(0, len(seen) - n + 1, n):
        assert sorted(seen[start : start + n]) == list(range(n))


def test_each_epoch_and_each_seed_has_an_order_of_its_own():
    orders = [
        tuple(batch) for seed in (0, 1) for batch in draw_batches(texts(*range(20)), 20, 3, seed)
    ]

    assert len(set(orders)) == 6


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**62))
def test_shared_sentences_come_in_one_order_however_many_others_lie_between(
    labeled, generated, seed
):
    alone = stream(texts(*range(labeled)), 4, 40, seed)
    among = [i for i in stream(texts(*range(labeled + generated)), 4, 40, seed) if i < labeled]

    shorter = min(len(alone), len(among))
    assert alone[:shorter] == among[:shorter]


def test_the_order_follows_the_text_not_the_place_in_the_list():
    forward, backward = texts(5, 6, 7, 8), texts(8, 7, 6, 5)

    first = [forward[i][0].ids[1] for i in stream(forward, 2, 6, seed=3)]
    assert first == [backward[i][0].ids[1] for i in stream(backward, 2, 6, seed=3)]


def test_copies_of_one_text_are_not_neighbors_by_rule():
    """Otherwise a set learned twice over would see each sentence twice in a batch."""
    order = stream(texts(*[*range(50)] * 2), 100, 1, seed=0)

    neighbors = sum(a % 50 == b % 50 for a, b in zip(order, islice(order, 1, None), strict=False))
    assert neighbors < 10


@pytest.mark.parametrize("n", [200, 240])
def test_places_in_an_epoch_are_uniform(n):
    """The mean place of a sentence over many epochs is the middle: no text is always seen first."""
    windows = texts(*range(n))
    places = np.argsort(list(draw_batches(windows, n, 400, seed=1)), axis=1)

    assert np.abs(places.mean(axis=0) - (n - 1) / 2).max() < 5 * n / np.sqrt(12 * 400)
