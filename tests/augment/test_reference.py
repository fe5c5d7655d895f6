"""The fast path against Algorithm 2 read literally (bench/algorithm2.py)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithm2 import generate, perplexity
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.pairing import Pairing
from seqmix.augment.score_range import ScoreRange
from seqmix.augment.seqmix import SeqMix
from seqmix.augment.settings import Mixing
from seqmix.data.scheme import repair
from seqmix.starter import load_language_model
from tests.support.toys import WORDS, toy_sentences, toy_table


def literal(sentences, pairs, weights, table, score, limits, n, whole):
    return generate(
        sentences,
        pairs,
        weights,
        table.vectors,
        table.words,
        table.starts,
        table.split,
        score,
        limits.low,
        limits.high,
        n,
        whole,
    )


def visited(rule, sentences, most, rng, table):
    """Every pair once, then all again with a new λ, until so many were looked at."""

    def walk(given):
        return list(rule.pairs(sentences, lambda parent: True, given, rng, table.vector))

    first = walk(set())
    found = [(pair, 0) for pair in first]
    while first and len(found) < most:
        walk(set(first))  # finds nothing new, which takes a key of the generator
        found += [(pair, found[-1][1] + 1) for pair in walk(set())][: most - len(found)]
    return found


def proper(sentences):
    """Half of them with tags that are spans of BIO."""
    return [
        s.with_tags(repair([str(tag) for tag in s.tags])) if i % 2 else s
        for i, s in enumerate(sentences)
    ]


@pytest.mark.parametrize("variant", ["whole", "sub", "label"])
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000), high=st.sampled_from([3e4, 3e5, math.inf]), n=st.integers(1, 12)
)
def test_the_fast_path_gives_the_same_tokens_labels_and_scores(
    lm: str, variant: str, seed: int, high: float, n: int
) -> None:
    words = (*WORDS, *(f"é{i}" for i in range(8)))
    sentences, table, limits = (
        proper(toy_sentences(10, seed, longest=5)),
        toy_table(seed, words=words),
        ScoreRange(0, high),
    )
    mixer = SeqMix(
        variant,
        2,
        0.5,
        score_range=limits,
        table=table,
        discriminator=Perplexity(lm),
        max_uses=10_000,
    )

    made = mixer.augment(sentences, n, np.random.default_rng(seed))

    model, tokenizer = load_language_model(lm)
    rng = np.random.default_rng(seed)
    draw = int(rng.integers(2**62))
    visits = visited(Pairing(Mixing(variant, 2, 0.5)), sentences, 15 * n, rng, table)
    assert len(made) == n or made.counts.get("pairs", 0) == len(visits)
    visits = visits[: made.counts.get("pairs", 0)]
    expected = literal(
        sentences,
        [pair for pair, _ in visits],
        [mixer._weight(pair, draw, visit) for pair, visit in visits],
        table,
        lambda text: perplexity(text, model, tokenizer, tokenizer.bos_token_id),
        limits,
        10**9,
        variant == "whole",
    )
    unique = {
        tokens: (rows, score)
        for tokens, rows, score in reversed(expected)
        if tokens not in {s.tokens for s in sentences}
    }
    order = [
        tokens for tokens in dict.fromkeys(tokens for tokens, _, _ in expected) if tokens in unique
    ][:n]
    assert [one.sentence.tokens for one in made] == order
    for one in made:
        rows, score = unique[one.sentence.tokens]
        assert one.lineage.score == pytest.approx(score, rel=1e-3)
        for row, wanted in zip(one.sentence.tags, rows, strict=True):
            assert ({row: 1.0} if isinstance(row, str) else dict(row)) == pytest.approx(
                {wanted: 1.0} if isinstance(wanted, str) else wanted
            )
