"""Fluctuation: tags that change between rounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.query.history import fluctuation, share_changed
from seqmix.query.uncertainty import Uncertainty
from tests.support.pool_views import choose, make_view

tags = st.sampled_from(["O", "B-PER", "B-LOC"])


@given(
    rounds=st.integers(1, 5).flatmap(
        lambda length: st.lists(
            st.lists(tags, min_size=length, max_size=length), min_size=2, max_size=5
        )
    )
)
def test_it_is_the_share_of_tags_that_changed(rounds: list[list[str]]) -> None:
    changed = 0
    for r in range(1, len(rounds)):
        for t in range(len(rounds[0])):
            changed += rounds[r][t] != rounds[r - 1][t]

    assert share_changed(rounds) == pytest.approx(changed / (len(rounds[0]) * (len(rounds) - 1)))


def test_a_steady_sentence_scores_zero_and_a_restless_one_one() -> None:
    assert share_changed([["O", "B-PER"]] * 4) == share_changed([["O"]]) == 0
    assert share_changed([["O"], ["B-PER"], ["O"]]) == 1


def test_rounds_of_different_lengths_are_of_different_sentences_and_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        share_changed([["O", "B-PER"], ["O"]])


def test_the_present_prediction_counts_as_the_last_round() -> None:
    view = make_view(5, rounds=1)
    for id in view.ids:
        view.past[id] = [view.path[id][0]]
    view.past["s2"] = [tuple("X" for _ in view.path["s2"][0])]

    assert choose(fluctuation, view, 1, np.random.default_rng(0)) == {"s2": 1}


def test_the_first_round_is_by_token_entropy() -> None:
    view = make_view(9, rounds=0)

    assert dict(fluctuation(view)) == dict(Uncertainty()(view))


def test_a_newcomer_to_a_pool_with_a_past_scores_zero() -> None:
    view = make_view(3)
    del view.past["s1"]

    assert dict(fluctuation(view))["s1"] == 0
