"""Rank sentences by how unsure the tagger is of them.

A score maps one sentence's tag distributions to one number; higher is asked sooner. Policies stream: they hold n ids and scores,
however large the pool is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from heapq import nlargest

import numpy as np
from numpy.random import Generator
from scipy.special import entr  # -p log p, and 0 at p = 0

from seqmix.data.tagset import OUTSIDE
from seqmix.errors import ModelError
from seqmix.protocols import Chosen, Measure, Policy, PoolView, Probs

Score = Callable[[Probs], float]


def token_entropy(probs: Probs) -> float:
    """Entropy averaged over tokens (NTE, Eq. 3); the sum would mostly rank sentences by length."""
    return float(entr(probs.astype(np.float64)).sum(axis=1).mean())  # probs: [n_tokens, n_tags]


def least_confidence_sum(probs: Probs) -> float:
    """What the best tags leave over, summed over tokens (LC', Eq. 2); a sum as in the paper, so long sentences come sooner."""
    return float((1 - probs.max(axis=1).astype(np.float64)).sum())


def margin(probs: Probs) -> float:
    """How close the second tag comes to the first, averaged over tokens: 1 when they are equal, 0 when the tagger is certain."""
    ordered = np.sort(probs.astype(np.float64), axis=1)
    second = ordered[:, -2] if ordered.shape[1] > 1 else 0.0
    return float((1 - (ordered[:, -1] - second)).mean())


_MEASURES: dict[Score, Measure] = {
    token_entropy: "entropy",
    least_confidence_sum: "least",
    margin: "margin",
}  # what a tagger computes


@dataclass(frozen=True)
class Uncertainty:
    """Ask for the sentences with the highest score: `Uncertainty(margin)`, or any function of a sentence's tag distributions."""

    score: Score = token_entropy

    def __call__(self, view: PoolView, n: int, rng: Generator) -> Chosen:
        """One pass over the pool."""
        measure = _MEASURES.get(self.score)
        return top(
            view.unsure(measure)
            if measure
            else ((id, self.score(probs)) for id, probs in view.probs()),
            n,
            rng,
        )


@dataclass(frozen=True)
class LeastConfidence:
    """Ask where the most probable path, of all there are, is least probable (LC, Eq. 1): the Viterbi path when the head is a CRF."""

    def __call__(self, view: PoolView, n: int, rng: Generator) -> Chosen:
        """One pass over the pool."""
        return top(
            ((id, 1 - probability) for id, _, probability in view.paths(legal=False)), n, rng
        )


@dataclass(frozen=True)
class MNLP:
    """Ask where the best path's log-probability per token is lowest (Shen et al. 2017): LC without its taste for length."""

    def __call__(self, view: PoolView, n: int, rng: Generator) -> Chosen:
        """One pass over the pool."""
        tiny = math.ulp(0.0)  # subtle: the path of a very long sentence may have underflowed to 0
        return top(
            (
                (id, -math.log(max(probability, tiny)) / len(tags))
                for id, tags, probability in view.paths(legal=False)
            ),
            n,
            rng,
        )


@dataclass(frozen=True)
class TagCount:
    """Ask for the sentences with the most predicted valid (non-O) tags (tag count of Kohl et al. 2024)."""

    def __call__(self, view: PoolView, n: int, rng: Generator) -> Chosen:
        """One pass over the pool; ties are common and fall at random."""
        return top(
            ((id, float(sum(tag != OUTSIDE for tag in tags))) for id, tags, _ in view.paths()),
            n,
            rng,
        )


def top(scored: Iterable[tuple[str, float]], n: int, rng: Generator) -> Chosen:
    """The n highest, best first, in one pass; ties are broken by the generator, the same way in whatever order the pool comes."""
    lot = lots(rng)
    best = nlargest(n, ((_number(id, score), lot(id), id) for id, score in scored))
    return Chosen([(id, score) for score, _, id in best])


def lots(rng: Generator) -> Callable[[str], float]:
    """One random number in [0, 1) an id. It hangs on the generator and the id alone, not on when the id comes."""
    key = rng.bytes(16)

    def lot(id: str) -> float:
        digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
        return (int.from_bytes(digest, "big") >> 11) * 2.0**-53

    return lot


def ranked(policy: Policy, view: PoolView, n: int, rng: Generator) -> Chosen:
    """What a policy chooses, with scores; a plain list of ids says only their order, which is scored 0, -1, -2 …"""
    chosen = policy(view, n, rng)
    known = chosen.scores if isinstance(chosen, Chosen) else {}
    return Chosen(
        [(id, known.get(id, -float(rank))) for rank, id in enumerate(dict.fromkeys(chosen))][
            : max(n, 0)
        ]
    )


def _number(id: str, score: float) -> float:
    if math.isnan(score):
        raise ModelError(
            f"the score of sentence {id!r} is not a number, so the tagger has come apart; train it with a lower lr"
        )
    return score
