"""Augment on one thread, so that a part of the work gives the same bits on any machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqmix.data.augmented import Augmentation
from seqmix.data.sentence import Sentence
from seqmix.protocols import Augmenter


@dataclass(frozen=True)
class SingleThread:
    """An augmenter whose scores are computed on one thread: more would change their last bits."""

    augmenter: Augmenter

    def augment(
        self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator
    ) -> Augmentation:
        """Generate up to n sentences."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return self.augmenter.augment(sentences, n, rng)
        finally:
            torch.set_num_threads(threads)
