"""The starter is as good as it was: figures recorded once, with a fixed seed, on the gazette.

Raise a recorded figure only together with a change that was meant to move it, and say so in the
changelog.
"""

from __future__ import annotations

import numpy as np
import pytest

import seqmix
from seqmix.augment.discriminator import Perplexity
from seqmix.data.scoring import score
from seqmix.tagger import Settings, Tagger

F1 = 58.55  # seed 0: 100 sentences, 8 epochs in batches of 8, test of the gazette
PERPLEXITY = 208.784  # geometric mean over the first 60 sentences of the test set


@pytest.mark.ci
def test_the_taggers_f1_has_not_drifted() -> None:
    """Within 3 points.

    On one machine the figure repeats to the digit; other kernels round otherwise, and training
    makes that grow, but less than another seed does (seeds 0 to 3 gave 58.6, 59.3, 61.1 and 59.3).
    The first starter is told from this one: 49.2 with seed 0.
    """
    train, test = seqmix.sample("gazette:train")[:100], seqmix.sample("gazette:test")
    tagger = Tagger(settings=Settings(epochs=8, batch_size=8), device="cpu").fit(
        train, np.random.default_rng(0)
    )
    actual = [
        list(paths[0].tags)
        for paths in tagger.best_paths([sentence.unlabeled() for sentence in test])
    ]

    assert 100 * score([list(sentence.tags) for sentence in test], actual).f1 == pytest.approx(
        F1, abs=3
    )


def test_the_language_models_perplexity_has_not_drifted() -> None:
    """Within a thousandth: nothing is trained here, so only rounding may differ."""
    scores = Perplexity(device="cpu").scores(seqmix.sample("gazette:test")[:60])

    assert float(np.exp(np.log(scores).mean())) == pytest.approx(PERPLEXITY, rel=1e-3)
