"""The fast path against Algorithm 2 read literally (bench/reference.py)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import toy_sentences, toy_table

from reference import generate, perplexity
from seqmix.augment.discriminator import Perplexity, ScoreRange
from seqmix.augment.pairing import Pairing
from seqmix.augment.seqmix import SeqMix
from seqmix.starter import load_language_model


def literal(sentences, pairs, weights, table, score, limits, n, whole):
    return generate(
        sentences, pairs, weights, table.vectors, table.words, table.starts, table.split, score, limits.low, limits.high, n, whole
    )


@pytest.mark.parametrize("variant", ["whole", "sub", "label"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), high=st.sampled_from([3e4, 3e5, math.inf]), n=st.integers(1, 12))
def test_the_fast_path_gives_the_same_tokens_labels_and_scores(lm: str, variant: str, seed: int, high: float, n: int) -> None:
    sentences, table, limits = toy_sentences(10, seed, longest=5), toy_table(seed), ScoreRange(0, high)
    mixer = SeqMix(variant, 2, 0.5, score_range=limits, table=table, discriminator=Perplexity(lm), max_uses=10_000)

    made = mixer.augment(sentences, n, np.random.default_rng(seed))

    model, tokenizer = load_language_model(lm)
    rng = np.random.default_rng(seed)
    draw = int(rng.integers(2**62))
    rule = Pairing(variant, 2, 0.5)
    pairs = list(rule.pairs(sentences, lambda parent: True, set(), rng, table.vector))
    expected = literal(
        sentences,
        pairs,
        [mixer._weight(pair, draw) for pair in pairs],
        table,
        lambda text: perplexity(text, model, tokenizer, tokenizer.bos_token_id),
        limits,
        10**9,
        variant == "whole",
    )
    unique = {tokens: (rows, score) for tokens, rows, score in reversed(expected) if tokens not in {s.tokens for s in sentences}}
    order = [tokens for tokens in dict.fromkeys(tokens for tokens, _, _ in expected) if tokens in unique][:n]
    assert [one.sentence.tokens for one in made] == order
    for one in made:
        rows, score = unique[one.sentence.tokens]
        assert one.lineage.score == pytest.approx(score, rel=1e-3)
        for row, wanted in zip(one.sentence.tags, rows, strict=True):
            assert ({row: 1.0} if isinstance(row, str) else dict(row)) == pytest.approx(
                {wanted: 1.0} if isinstance(wanted, str) else wanted
            )
