"""Scores by how often the tagger changes its mind from round to round.

After the fluctuation history that did well in Kohl et al. 2024. Yao et al. 2020 count changes of a
sentence's uncertainty scores; the pool view remembers tags, so here tags are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from seqmix.protocols import PoolView
from seqmix.query.uncertainty import Uncertainty


def share_changed(rounds: Sequence[Sequence[str]]) -> float:
    """Return the share of tags that changed from one round to the next.

    >>> share_changed([["O", "O"], ["O", "B-PER"], ["O", "B-PER"]])
    0.25
    """
    changes = [
        before != after
        for earlier, later in pairwise(rounds)
        for before, after in zip(earlier, later, strict=True)
    ]
    return sum(changes) / len(changes) if changes else 0.0


def fluctuation(view: PoolView) -> Iterator[tuple[str, float]]:
    """Score by how often the predicted tags changed over the rounds remembered and this one.

    While nothing is remembered (round 1) the score is the token entropy; later, a sentence without
    a past scores 0.
    """
    history = view.history()
    if not history:
        return Uncertainty()(view)
    return ((id, share_changed([*history.get(id, ()), tags])) for id, tags, _ in view.paths())
