"""Does augmentation help? On against off on the labeled sentences, at equal optimizer steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE
from seqmix.loop.learner import Augmenters, Fit
from seqmix.loop.seeds import generator
from seqmix.protocols import Augmenter, Tagger
from seqmix.settings import at


@dataclass(frozen=True)
class Guard:
    """Ask before each training whether augmentation helps on the sentences labeled so far."""

    fit: Fit
    augmenter: Augmenters
    rate: float | Sequence[float]
    steps: Callable[[int], int | None]
    folds: int = 3
    seed: int = 0

    def __call__(self, labeled: Sequence[Sentence], round: int) -> dict[str, Any]:
        """Return `helps`, the mean gain in F1 and that of each fold."""
        augmenter = self.augmenter(round)
        assert augmenter is not None  # there is no guard without augmentation
        rng, rate = generator(self.seed, round, "guard"), at(self.rate, round)
        return does_it_help(labeled, augmenter, rate, self.fit, self.steps, rng, self.folds)


def does_it_help(
    labeled: Sequence[Sentence],
    augmenter: Augmenter,
    rate: float,
    fit: Fit,
    steps: Callable[[int], int | None],
    rng: np.random.Generator,
    folds: int = 3,
) -> dict[str, Any]:
    """Compare F1 with and without augmentation on each of k folds, which neither is trained on.

    It helps unless the mean difference is negative.
    """
    order = rng.permutation(len(labeled))
    gains = []
    for held_out in np.array_split(order, min(folds, len(labeled))):
        rest = [labeled[i] for i in order if i not in set(held_out.tolist())]
        gold = [labeled[i] for i in held_out]
        asked = round(rate * len(rest))
        generated = augmenter.augment(rest, asked, rng).sentences
        seed = int(rng.integers(2**62))
        count = steps(len(rest) + asked)
        f1 = []
        for sentences in (rest, [*rest, *generated]):
            tagger = fit(sentences, count, np.random.default_rng(seed), None)
            f1.append(_f1(tagger, gold))
        gains.append(f1[1] - f1[0])
    gain = float(np.mean(gains))
    return {"helps": gain >= 0, "gain": gain, "folds": [float(g) for g in gains]}


def _f1(tagger: Tagger, gold: Sequence[Sentence]) -> float:
    """Return F1 on the tokens that are labeled."""
    predicted = tagger.predict([sentence.unlabeled() for sentence in gold])
    pairs = [
        (sentence.hardened().tags, guess.tags)
        for sentence, guess in zip(gold, predicted, strict=True)
    ]
    right = [[str(tag or OUTSIDE) for tag in tags] for tags, _ in pairs]
    guesses = [
        [str(guess) if tag else OUTSIDE for tag, guess in zip(tags, guessed, strict=True)]
        for tags, guessed in pairs
    ]
    return score(right, guesses).f1
