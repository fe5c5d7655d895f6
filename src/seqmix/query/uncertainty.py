"""Scores by how unsure the tagger is of a sentence; higher is asked sooner."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqmix.data.spans import OUTSIDE
from seqmix.protocols import Measure, PoolView, Probs

Floats = NDArray[np.float64]  # [n_tokens]


def entropies(rows: Probs) -> Floats:
    """Return the entropy of each token."""
    from scipy.special import entr  # -p log p, and 0 at p = 0; naming a policy needs no scipy

    return np.asarray(entr(rows.astype(np.float64)).sum(axis=1))  # rows: [n_tokens, n_tags]


def shortfalls(rows: Probs) -> Floats:
    """Return what the best tag of each token leaves over."""
    return np.asarray(1 - rows.max(axis=1).astype(np.float64), np.float64)


def surprisals(rows: Probs) -> Floats:
    """Return the negative log-probability of the best tag of each token."""
    best = rows.max(axis=1).astype(np.float64)
    return np.asarray(-np.log(np.maximum(best, math.ulp(0.0))))


def closeness(rows: Probs) -> Floats:
    """Return for each token how close its second tag comes to the first."""
    ordered = np.sort(rows.astype(np.float64), axis=1)
    second = ordered[:, -2] if ordered.shape[1] > 1 else 0.0
    return np.asarray(1 - (ordered[:, -1] - second))


def token_entropy(probs: Probs) -> float:
    """Return the entropy averaged over tokens (NTE, Eq. 3); a sum would mostly rank by length."""
    return float(entropies(probs).mean())


def least_confidence_sum(probs: Probs) -> float:
    """Return what the best tags leave over, summed over tokens (LC', Eq. 2).

    The paper sums, so long sentences are asked sooner.
    """
    return float(shortfalls(probs).sum())


def margin(probs: Probs) -> float:
    """Return how close the second tag comes to the first, averaged over tokens.

    1 when they are equally probable, 0 when the tagger is certain.
    """
    return float(closeness(probs).mean())


_MEASURES: dict[Callable[[Probs], float], Measure] = {  # those a tagger computes by itself
    token_entropy: "entropy",
    least_confidence_sum: "least",
    margin: "margin",
}


@dataclass(frozen=True)
class Uncertainty:
    """Score by a function of a sentence's tag distributions: `Uncertainty(margin)`."""

    measure: Callable[[Probs], float] = token_entropy

    def __call__(self, view: PoolView) -> Iterator[tuple[str, float]]:
        """Yield each sentence's id and score."""
        name = _MEASURES.get(self.measure)
        if name is not None:
            return view.unsure(name)
        return ((id, self.measure(probs)) for id, probs in view.probs())


def lc(view: PoolView) -> Iterator[tuple[str, float]]:
    """Score by how improbable the most probable of all paths is (LC, Eq. 1)."""
    return ((id, 1 - probability) for id, _, probability in view.paths(legal=False))


def mnlp(view: PoolView) -> Iterator[tuple[str, float]]:
    """Score by the best path's negative log-probability per token (Shen et al. 2017)."""
    tiny = math.ulp(0.0)  # the path of a very long sentence may have underflowed to 0
    return (
        (id, -math.log(max(probability, tiny)) / len(tags))
        for id, tags, probability in view.paths(legal=False)
    )


def tag_count(view: PoolView) -> Iterator[tuple[str, float]]:
    """Score by the number of predicted tags other than O (Kohl et al. 2024)."""
    return ((id, float(sum(tag != OUTSIDE for tag in tags))) for id, tags, _ in view.paths())


@dataclass(frozen=True)
class Reweighted:
    """Score by entropy, where a token weighs the more the rarer its tag is among the labels.

    The weight of tag k is 1 / (m_k + β · m), with m_k of the m labeled tokens (Luo et al. 2023);
    unlike theirs, the score is the mean over tokens, so that long sentences are not favored.
    """

    smoothing: float = 0.1  # β

    def __call__(self, view: PoolView) -> Iterator[tuple[str, float]]:
        """Yield each sentence's id and score."""
        from scipy.special import entr

        counts = view.labeled_tags()
        labeled = max(1, sum(counts.values()))
        rows = np.array([counts.get(tag, 0) for tag in view.tag_set.tags], dtype=np.float64)
        weights = labeled / (rows + self.smoothing * labeled)  # times m, for scores near 1
        for id, probs in view.probs():
            entropy = entr(probs.astype(np.float64)).sum(axis=1)
            yield id, float((weights[probs.argmax(axis=1)] * entropy).mean())
