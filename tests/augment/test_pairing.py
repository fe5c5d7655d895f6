"""Pairing: every window, every pair once, in random order, lazily."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.augment.pairing import Pairing, Stretch, shuffled
from seqmix.augment.settings import Mixing
from seqmix.data.sentence import Sentence, heaviest
from seqmix.errors import ConfigError
from tests.support.toys import sentences_strategy, toy_sentences, toy_table


def everything(
    rule: Pairing, sentences: list[Sentence], seed: int = 0
) -> list[tuple[Stretch, Stretch]]:
    return list(
        rule.pairs(
            sentences, lambda parent: True, set(), np.random.default_rng(seed), toy_table().vector
        )
    )


@given(n=st.integers(0, 500), seed=st.integers(0, 99))
def test_a_lazy_shuffle_gives_every_number_once(n: int, seed: int) -> None:
    assert sorted(shuffled(n, np.random.default_rng(seed))) == list(range(n))


def test_a_lazy_shuffle_favors_nobody() -> None:
    firsts = Counter(next(shuffled(10, np.random.default_rng(seed))) for seed in range(3000))

    assert min(firsts.values()) > 200 and max(firsts.values()) < 400


@pytest.mark.parametrize("variant", ["whole", "sub", "label"])
@given(
    sentences=sentences_strategy(),
    density=st.sampled_from([0.0, 0.34, 0.5, 1.0]),
    window=st.integers(1, 4),
)
def test_the_pairs_are_exactly_those_the_rule_allows(
    variant: str, sentences: list[Sentence], density: float, window: int
) -> None:
    def hard(row):
        return row if isinstance(row, str) else heaviest(row)

    found = everything(Pairing(Mixing(variant, window, density)), sentences)

    allowed = set()
    stretches = [
        Stretch(p, a, a + (len(s) if variant == "whole" else window))
        for p, s in enumerate(sentences)
        for a in ([0] if variant == "whole" else range(len(s) - window + 1))
    ]
    for one in stretches:
        for other in stretches:
            tags = [
                [hard(r) for r in sentences[x.parent].tags[x.start : x.end]] for x in (one, other)
            ]
            dense = all(sum(t != "O" for t in own) / window >= density - 1e-9 for own in tags)
            same = tags[0] == tags[1] if variant == "label" else len(tags[0]) == len(tags[1])
            if dense and same and sentences[one.parent].tokens != sentences[other.parent].tokens:
                allowed.add(frozenset((one, other)))
    assert {frozenset(pair) for pair in found} == allowed
    assert len(found) == len(allowed)  # none twice


def test_the_last_window_is_a_candidate() -> None:
    sentences = [
        Sentence("a", ("w1", "w2", "w3"), ("O", "O", "B-PER")),
        Sentence("b", ("w4", "w5", "w6"), ("O", "O", "B-LOC")),
    ]

    assert {
        x.start for pair in everything(Pairing(Mixing("sub", 1, 1.0)), sentences) for x in pair
    } == {2}


def test_a_whole_sentence_needs_as_many_valid_tags_as_a_window() -> None:
    long = [
        Sentence(id, tuple(f"{id}{i}" for i in range(12)), ("B-PER",) * 3 + ("O",) * 9)
        for id in "ab"
    ]
    short = [Sentence(id, (f"{id}0", f"{id}1"), ("B-PER",) * 2) for id in "cd"]

    assert len(everything(Pairing(Mixing("whole", 5, 0.6)), long)) == 1, (
        "three valid tags of a window of five, however long the sentence"
    )
    assert everything(Pairing(Mixing("whole", 5, 0.6)), short) == []


def test_windows_may_follow_entity_spans() -> None:
    tags = ("B-PER", "I-PER", "O", "B-LOC")
    sentences = [
        Sentence("a", ("w1", "w2", "w3", "w4"), tags),
        Sentence("b", ("w5", "w6", "w7", "w8"), tags),
    ]

    found = {
        frozenset((x.start, x.end) for x in pair)
        for pair in everything(Pairing(Mixing("sub", windows="spans")), sentences)
    }

    assert found == {frozenset({(0, 2)}), frozenset({(3, 4)})}


def test_similar_partners_are_near_neighbors() -> None:
    sentences = toy_sentences(30, longest=6)
    rule = Pairing(Mixing("sub", 1, 1.0, partners="similar"), neighbors=2)
    vector = toy_table().vector

    def cosine(one: Stretch, other: Stretch) -> float:
        a, b = (vector(sentences[x.parent].tokens[x.start]) for x in (one, other))
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    near = [cosine(*pair) for pair in everything(rule, sentences)]
    random = [cosine(*pair) for pair in everything(Pairing(Mixing("sub", 1, 1.0)), sentences)]

    assert np.mean(near) > np.mean(random) + 0.5
    assert len(near) == len(set(everything(rule, sentences)))


def test_a_missing_label_keeps_a_window_out() -> None:
    sentences = [
        Sentence("a", ("w1", "w2"), ("B-PER", None)),
        Sentence("b", ("w3", "w4"), ("B-PER", "B-PER")),
    ]

    assert everything(Pairing(Mixing("sub", 2, 0.5)), sentences) == []


def test_parents_that_are_used_up_are_passed_over_without_a_long_search() -> None:
    sentences = toy_sentences(400, shortest=6)
    open_parents = {3, 7, 9}
    asked = 0

    def free(parent: int) -> bool:
        nonlocal asked
        asked += 1
        return parent in open_parents

    found = list(
        Pairing(Mixing("sub", 2, 0.5)).pairs(
            sentences, free, set(), np.random.default_rng(0), toy_table().vector
        )
    )

    assert found and {x.parent for pair in found for x in pair} <= open_parents
    assert asked < 50_000  # of about a million pairs


def test_twenty_thousand_sentences_start_at_once_and_list_nothing() -> None:
    import tracemalloc

    sentences = toy_sentences(20_000)
    rule = Pairing(Mixing("sub", 2, 0.5))
    tracemalloc.start()
    first = list(
        islice(
            rule.pairs(
                sentences, lambda parent: True, set(), np.random.default_rng(0), toy_table().vector
            ),
            100,
        )
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(set(first)) == 100
    assert peak < 60e6  # the windows themselves; their pairs would be billions


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"density": 1.1}, "at most 1"),
        ({"window": 0}, "at least 1"),
        ({"variant": "half"}, "'whole', 'sub' or 'label'"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Pairing(Mixing(**settings))
