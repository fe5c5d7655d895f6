"""A small corpus, and a learner that learns from it in no time."""

from __future__ import annotations

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.loop.learner import ActiveLearner
from seqmix.loop.pool import Pool
from seqmix.testing import WordTagger

TAGS = TagSet.ordered(["O", "B-PER", "B-LOC"])


def fit(sentences, steps, rng, last) -> WordTagger:
    return WordTagger(TAGS).fit(sentences, rng)


def corpus(n: int = 60, seed: int = 0) -> list[Sentence]:
    rng = np.random.default_rng(seed)
    sentences = []
    for i in range(n):
        length = int(rng.integers(2, 7))
        words = [int(w) for w in rng.integers(0, 40, size=length)]
        tags = ["B-PER" if w % 5 == 0 else "B-LOC" if w % 7 == 0 else "O" for w in words]
        sentences.append(Sentence(f"s{i}", tuple(f"w{w}" for w in words), tuple(tags)))
    return sentences


def entropy_policy(view, n, rng) -> dict[str, float]:
    scored = [(id, float(-(probs * np.log(probs)).sum(1).mean())) for id, probs in view.probs()]
    return dict(sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:n])


def small_learner(pool: Pool, seed: int = 0, **changes) -> ActiveLearner:
    how = {"tagger": fit, "policy": entropy_policy, "rate": 0.0, **changes}
    return ActiveLearner(pool=pool, seed=seed, **how)
