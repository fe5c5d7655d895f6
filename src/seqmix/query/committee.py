"""Scores by disagreement: of a committee of taggers, or of a tagger under dropout masks.

A sentence on which all agree scores 0, however unsure each of them is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqmix.errors import ConfigError
from seqmix.protocols import PoolView


def vote_entropy(votes: NDArray[np.int64]) -> float:
    """Return the entropy of the votes, averaged over tokens (Eq. 4)."""
    from scipy.special import entr

    shares = (votes[..., None] == np.arange(votes.max() + 1)).mean(
        axis=0
    )  # votes: [n_members, n_tokens] -> [n_tokens, n_tags]
    return float(entr(shares).sum(axis=1).mean())


def mutual_information(passes: NDArray[np.float32]) -> float:
    """Return the entropy of the mean less the mean of the entropies, averaged over tokens."""
    from scipy.special import entr

    probs = passes.astype(np.float64)  # [n_passes, n_tokens, n_tags]
    gain = entr(probs.mean(axis=0)).sum(axis=1) - entr(probs).sum(axis=2).mean(axis=0)
    return max(0.0, float(gain.mean()))  # rounding can leave a tiny negative number


def qbc(view: PoolView) -> Iterator[tuple[str, float]]:
    """Score by the vote entropy of the view's committee (query by committee)."""
    return ((id, vote_entropy(votes)) for id, votes in view.votes())


@dataclass(frozen=True)
class BALD:
    """Score by how much dropout masks disagree (Houlsby et al. 2011; Gal et al. 2017)."""

    passes: int = 10

    def __post_init__(self) -> None:
        if self.passes < 2:
            raise ConfigError(f"passes must be at least 2, to be compared; got {self.passes}")

    def __call__(self, view: PoolView) -> Iterator[tuple[str, float]]:
        """Yield each sentence's id and score."""
        return ((id, mutual_information(probs)) for id, probs in view.dropped(self.passes))
