"""Mixing: tokens by nearest entry, rows by weight, both parents rewritten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.augment.mixing import MixedPair, like, mix, mix_rows, rewritten
from seqmix.augment.pairing import Stretch
from seqmix.augment.table_sources import encoder_table
from seqmix.data.sentence import Sentence
from tests.support.toys import TAGS, toy_table

ROWS = st.sampled_from(TAGS) | st.sampled_from(
    [{"O": 0.25, "B-PER": 0.75}, {"B-LOC": 0.5, "I-PER": 0.5}]
)


@given(one=ROWS, other=ROWS, weight=st.floats(0, 1))
def test_a_mixed_row_sums_to_one_and_each_tag_has_its_share(one, other, weight: float) -> None:
    mixed = mix_rows(one, other, weight)

    def share(row, tag):
        return (1.0 if row == tag else 0.0) if isinstance(row, str) else row.get(tag, 0.0)

    assert sum(share(mixed, tag) for tag in TAGS) == pytest.approx(1)
    for tag in TAGS:
        assert share(mixed, tag) == pytest.approx(
            weight * share(one, tag) + (1 - weight) * share(other, tag), abs=1e-9
        )


def test_rows_that_agree_stay_hard() -> None:
    assert mix_rows("B-PER", "B-PER", 0.3) == "B-PER"


def test_both_parents_are_rewritten_and_keep_the_rest() -> None:
    a = Sentence("a", ("w1", "w2", "w3", "w4"), ("O", "B-PER", "I-PER", "O"))
    b = Sentence("b", ("w5", "w6", "w7"), ("B-LOC", "B-LOC", "O"))
    pair = (Stretch(0, 1, 3), Stretch(1, 0, 2))

    (mixed,) = mix([a, b], [pair], [0.39], toy_table())
    first, second = (
        rewritten(s, x, mixed, "new", False) for s, x in zip((a, b), pair, strict=True)
    )

    assert first.tokens == ("w1", *mixed.tokens, "w4") and second.tokens == (*mixed.tokens, "w7")
    assert dict(first.tags[1]) == pytest.approx({"B-PER": 0.39, "B-LOC": 0.61})
    assert first.tags[0] == "O" and first.tags[3] == "O" and second.tags[:2] == first.tags[1:3]
    assert mixed.tokens[0] not in ("w2", "w5") and mixed.tokens[1] not in ("w3", "w6")


@pytest.mark.parametrize(
    ("word", "model", "expected"),
    [
        ("Ohio", "COLORADO", "OHIO"),
        ("OHIO", "Colorado", "Ohio"),
        ("Ohio", "in", "ohio"),
        ("ohio", "McDonald", "ohio"),
        ("ohio", "12", "ohio"),
        ("ohio", "I", "Ohio"),
    ],
)
def test_a_word_takes_the_casing_class_of_the_one_it_replaces(
    word: str, model: str, expected: str
) -> None:
    assert like(word, model) == expected


def test_casing_never_brings_the_parent_back() -> None:
    table = encoder_table()
    a = Sentence("a", ("COLORADO", "beat", "OHIO"), ("B-ORG", "O", "B-ORG"))
    b = Sentence("b", ("Colorado", "beat", "Ohio"), ("B-LOC", "O", "B-LOC"))

    (mixed,) = mix([a, b], [(Stretch(0, 0, 3), Stretch(1, 0, 3))], [0.5], table, any_case=True)
    new = rewritten(a, Stretch(0, 0, 3), mixed, "new", True)

    assert all(
        one.lower() != other.lower() for one, other in zip(new.tokens, a.tokens, strict=True)
    )
    assert [new.tokens[at] for at in (0, 2)] == [
        new.tokens[at].upper() for at in (0, 2)
    ]  # a letter without case is as upper as it gets


def test_the_casing_of_the_parent_is_kept_only_when_asked_for() -> None:
    parent = Sentence("a", ("In", "OSLO", "today"), ("O", "B-LOC", "O"))
    mixed = MixedPair((Stretch(0, 1, 2), Stretch(1, 0, 1)), 0.5, ("Rome",), ("B-LOC",), (0.1,))

    assert rewritten(parent, Stretch(0, 1, 2), mixed, "new", True).tokens == ("In", "ROME", "today")
    assert rewritten(parent, Stretch(0, 1, 2), mixed, "new", False).tokens == (
        "In",
        "Rome",
        "today",
    )


@pytest.mark.parametrize("any_case", [False, True])
def test_no_piece_of_a_parent_comes_out_as_a_word(any_case: bool) -> None:
    table = encoder_table()
    words = ("Sergi", "Lukashenko", "Zhirinovsky", "Kwasniewski", "Studenikova", "DiSarcina")
    a, b = Sentence("a", words, ("B-PER",) * 6), Sentence("b", words[::-1], ("B-PER",) * 6)
    pairs = [(Stretch(0, 0, 6), Stretch(1, 0, 6))] * 9

    for mixed in mix([a, b], pairs, [k / 10 for k in range(1, 10)], table, any_case=any_case):
        for new, *parents in zip(mixed.tokens, a.tokens, b.tokens, strict=True):
            pieces = {table.words[id] for parent in parents for id in table.split(parent)}
            assert new.lower() not in {p.lower() for p in pieces} if any_case else new not in pieces


def test_all_positions_of_all_pairs_are_looked_up_at_once() -> None:
    rng = np.random.default_rng(0)
    sentences = [
        Sentence(f"s{i}", tuple(rng.choice([f"w{k}" for k in range(40)], size=5)), ("B-PER",) * 5)
        for i in range(30)
    ]
    pairs = [(Stretch(i, 0, 5), Stretch(i + 1, 0, 5)) for i in range(29)]
    weights = rng.random(29).tolist()

    together = mix(sentences, pairs, weights, toy_table())
    alone = [
        mix(sentences, [pair], [weight], toy_table())[0]
        for pair, weight in zip(pairs, weights, strict=True)
    ]

    assert together == alone
