"""Ask for a part of a sentence: the window of tokens that a policy scores highest.

After Radmard et al. (ACL 2021), but simpler: a sentence is chosen by its score as a whole and asked
for once, the rest of it stays without labels, and answers are not copied to other sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from seqmix.data.spans import spans
from seqmix.errors import ConfigError
from seqmix.protocols import PoolView, Probs
from seqmix.query.selection import affordable
from seqmix.query.spec import PolicySpec

Window = tuple[int, int]  # from start up to but not including end


def even(rows: Probs) -> NDArray[np.float64]:
    """Score all tokens alike, so that each window is as likely as the next."""
    return np.zeros(len(rows))  # rows: [n_tokens, n_tags]


def best_window(
    scores: NDArray[np.float64], tags: Sequence[str], size: int, rng: Generator
) -> Window:
    """Return the window of the highest scores, widened where it would cut a span of these tags.

    The generator chooses among equals.

    >>> tags = ("O", "B-PER", "I-PER", "O", "O")
    >>> best_window(np.array([0, 0, 0.9, 0.8, 0.1]), tags, 2, np.random.default_rng(0))
    (1, 4)
    """
    if len(scores) <= size:
        return 0, len(scores)
    sums = np.lib.stride_tricks.sliding_window_view(scores, size).sum(axis=1)
    start = int(rng.choice(np.flatnonzero(sums == sums.max())))
    end = start + size
    cut = [span for span in spans(tags) if span.start < end and span.end > start]
    return min([start, *(span.start for span in cut)]), max([end, *(span.end for span in cut)])


@dataclass(frozen=True)
class SentencePart:
    """Ask for `size` tokens of each chosen sentence, more where a predicted span would be cut."""

    size: int
    budget: int | None = None  # tokens of all parts together

    def __post_init__(self) -> None:
        if self.size < 1 or (self.budget is not None and self.budget < 1):
            raise ConfigError(
                "a part must have at least 1 token, and so must its budget; "
                f"got {self.size} and {self.budget}"
            )

    def windows(self, view: PoolView, policy: PolicySpec, rng: Generator) -> dict[str, Window]:
        """Return the window to ask for of each sentence of a view, by id."""
        measure = policy.tokens
        assert measure is not None  # the learner refuses others
        pairs = zip(view.probs(), view.paths(), strict=True)
        return {
            id: best_window(measure(rows), tags, self.size, rng)
            for (id, rows), (_, tags, _) in pairs
        }

    def within_budget(
        self, scores: Mapping[str, float], windows: Mapping[str, Window]
    ) -> dict[str, float]:
        """Return the scores of those sentences whose parts fit into the budget, best first."""
        if self.budget is None:
            return dict(scores)
        costs = {id: end - start for id, (start, end) in windows.items()}
        return {id: scores[id] for id in affordable(scores, costs, self.budget)}
