"""Does it help? Augmentation on against off on the labeled sentences themselves, at equal optimizer steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.loop.learner import Fit
from seqmix.protocols import Augmenter


def does_it_help(
    labeled: Sequence[Sentence],
    augmenter: Augmenter,
    rate: float,
    fit: Fit,
    steps: Callable[[int], int | None],
    rng: np.random.Generator,
    folds: int = 3,
) -> dict[str, Any]:
    """k-fold: F1 with and without augmentation on the held-out part of each fold. It helps unless the mean difference is negative."""
    order = rng.permutation(len(labeled))
    gains = []
    for held_out in np.array_split(order, min(folds, len(labeled))):
        kept = [labeled[i] for i in order if i not in set(held_out.tolist())]
        gold = [labeled[i] for i in held_out]
        wanted = round(rate * len(kept))
        more = augmenter.augment(kept, wanted, rng).sentences
        seed = int(rng.integers(2**62))
        count = steps(len(kept) + wanted)
        f1 = []
        for sentences in (kept, [*kept, *more]):
            tagger = fit(sentences, count, np.random.default_rng(seed), None)
            found = [
                [str(tag) for tag in s.tags] for s in tagger.predict([s.unlabeled() for s in gold])
            ]
            f1.append(score([[str(tag) for tag in s.hardened().tags] for s in gold], found).f1)
        gains.append(f1[1] - f1[0])
    gain = float(np.mean(gains))
    return {"helps": gain >= 0, "gain": gain, "folds": [float(g) for g in gains]}
