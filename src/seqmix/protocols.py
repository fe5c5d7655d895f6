"""What each part asks of the next, on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqmix.data.augmented import Augmentation
from seqmix.data.sentence import Sentence


class Augmenter(Protocol):
    """Makes up to n new labeled sentences from labeled ones, each with its lineage. It never sees a tagger."""

    def augment(self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator) -> Augmentation:
        """Fewer than n come only with a reason."""
        ...


class Discriminator(Protocol):
    """Scores sentences; accepting is a range test beside it."""

    base: Any

    def scores(self, sentences: Sequence[Sentence], parents: Sequence[str] | None = None, above: float = ...) -> NDArray[np.float64]:
        """One number a sentence; `inf` for one that is proven to lie above `above`."""
        ...
