"""Ask where the tagger keeps changing its mind from round to round.

After the fluctuation history that did well in Kohl et al. 2024. The fluctuation of Yao et al. 2020 is that of a sentence's
uncertainty scores; the pool view remembers tags, so here it is the tags that fluctuate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from numpy.random import Generator

from seqmix.protocols import Chosen, PoolView
from seqmix.query.uncertainty import Uncertainty, top


def fluctuation(rounds: Sequence[Sequence[str]]) -> float:
    """The share of tags that changed from one round to the next: 0 for a single round, 1 when every tag changes every time.

    >>> fluctuation([["O", "O"], ["O", "B-PER"], ["O", "B-PER"]])
    0.25
    """
    changes = [
        before != after
        for one, other in pairwise(rounds)
        for before, after in zip(one, other, strict=True)
    ]
    return sum(changes) / len(changes) if changes else 0.0


@dataclass(frozen=True)
class Fluctuation:
    """Ask for the sentences whose predicted tags changed most often over the rounds remembered and the present one.

    While nothing is remembered (round 1) it asks by token entropy (NTE), so that the first round is informed too. A sentence
    without a past in a pool that has one scores 0.
    """

    def __call__(self, view: PoolView, n: int, rng: Generator) -> Chosen:
        """One pass over the pool."""
        history = view.history()
        if not history:
            return Uncertainty()(view, n, rng)

        def scored() -> Iterator[tuple[str, float]]:
            for id, tags, _ in view.paths():
                yield id, fluctuation([*history.get(id, ()), tags])

        return top(scored(), n, rng)
