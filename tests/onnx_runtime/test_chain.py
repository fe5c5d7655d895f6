"""The chain in numpy gives what the one in torch gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.tagset import TagSet
from seqmix.onnx_runtime import chain as ours
from seqmix.tagger import crf as theirs
from seqmix.tagger.decoding import legal_rules

TAGS = TagSet.ordered(("O", "B-A", "I-A", "B-B", "I-B"))


def draw(seed: int, lengths: list[int], legal: bool):
    rng = np.random.default_rng(seed)
    n = len(TAGS)
    scores = rng.normal(size=(len(lengths), max(lengths), n)) * 3
    chain = ours.Chain(rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n))
    twin = theirs.Chain(*map(torch.tensor, (chain.transitions, chain.start, chain.end)))
    if legal:
        chain = chain.restricted(TAGS)
        twin = twin.restricted(*legal_rules(TAGS, torch.device("cpu")))
    ends = np.array(lengths)
    return (scores, ends, chain), (torch.tensor(scores), torch.tensor(ends), twin)


@given(
    seed=st.integers(0, 2**32),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    n=st.integers(1, 4),
    legal=st.booleans(),
)
def test_partition_marginals_and_paths_are_those_of_torch(seed, lengths, n, legal):
    numpy, torch_ = draw(seed, lengths, legal)

    assert ours.log_partition(*numpy) == pytest.approx(theirs.log_partition(*torch_).numpy())
    inside = np.arange(max(lengths)) < np.array(lengths)[:, None]
    assert ours.marginals(*numpy)[inside] == pytest.approx(
        theirs.marginals(*torch_).numpy()[inside], abs=1e-9
    )
    paths, scores = ours.best_paths(*numpy, n)
    expected, expected_scores = (tensor.numpy() for tensor in theirs.best_paths(*torch_, n))
    assert scores == pytest.approx(expected_scores)
    real = scores > ours.IMPOSSIBLE / 2  # paths that break rules are ties
    assert (paths[real] == expected[real]).all()
