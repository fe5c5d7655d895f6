"""What bench/certify.py measures of conformal sets."""

from __future__ import annotations

import numpy as np
import pytest

from certify import least_probability


def test_a_conformal_set_holds_the_right_tagging_as_often_as_it_should():
    rng = np.random.default_rng(2)
    paths = [np.sort(rng.dirichlet([0.6] * 6))[::-1][:4].tolist() for _ in range(4000)]
    rights = [int(rng.choice(5, p=[*p, 1 - sum(p)])) for p in paths]
    places = [right if right < 4 else -1 for right in rights]
    pairs = list(zip(paths, places, strict=True))
    for alpha in (0.1, 0.2):
        least = least_probability(pairs[:2000], alpha)
        sizes = [
            max(1, sum(p >= least for p in probabilities)) for probabilities, _ in pairs[2000:]
        ]
        held = [0 <= right < size for (_, right), size in zip(pairs[2000:], sizes, strict=True)]
        assert 1 < np.mean(sizes) < 4
        assert np.mean(held) == pytest.approx(1 - alpha, abs=0.03)
    assert least_probability([([0.9, 0.1], 0)] * 5, 0.01) == 0
    assert least_probability([([0.9, 0.1], 0), ([0.8], -1)], 0.5) == 0
