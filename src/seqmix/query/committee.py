"""Ask where several opinions differ: those of a committee of taggers, or of one tagger under several dropout masks.

A sentence on which all agree scores 0, however unsure each of them is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import entr

from seqmix.errors import ConfigError
from seqmix.protocols import Chosen, PoolView
from seqmix.query.uncertainty import top


def vote_entropy(votes: NDArray[np.int64]) -> float:
    """Entropy of the votes, averaged over tokens (Eq. 4)."""
    shares = (votes[..., None] == np.arange(votes.max() + 1)).mean(
        axis=0
    )  # votes: [n_members, n_tokens] -> [n_tokens, n_tags]
    return float(entr(shares).sum(axis=1).mean())


def mutual_information(passes: NDArray[np.float32]) -> float:
    """Entropy of the mean less the mean of the entropies, averaged over tokens: what the passes differ in, not what all doubt."""
    probs = passes.astype(np.float64)  # [n_passes, n_tokens, n_tags]
    gain = entr(probs.mean(axis=0)).sum(axis=1) - entr(probs).sum(axis=2).mean(axis=0)
    return max(
        0.0, float(gain.mean())
    )  # subtle: rounding can leave a tiny negative number where the passes agree


@dataclass(frozen=True)
class VoteEntropy:
    """Query by committee (QBC): ask for the sentences with the highest vote entropy. The view holds the committee."""

    def __call__(self, view: PoolView, n: int, rng: Generator) -> Chosen:
        """One pass over the pool."""
        return top(((id, vote_entropy(votes)) for id, votes in view.votes()), n, rng)


@dataclass(frozen=True)
class BALD:
    """Ask where dropout masks disagree most (Houlsby et al. 2011; Gal et al. 2017): `BALD(passes=10)`."""

    passes: int = 10

    def __post_init__(self) -> None:
        if self.passes < 2:
            raise ConfigError(f"passes is {self.passes}; BALD compares at least 2")

    def __call__(self, view: PoolView, n: int, rng: Generator) -> Chosen:
        """One pass over the pool."""
        return top(
            ((id, mutual_information(probs)) for id, probs in view.dropped(self.passes)), n, rng
        )
