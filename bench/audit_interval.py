"""How often the audit's interval holds the truth, and how wide it is.

    python -m bench.audit_interval [--draws 6000]

Invented models of three F1 on sentences that are all equally hard, easy or hopeless, or mostly
empty: the populations of the tests.
"""

from __future__ import annotations

import argparse

import numpy as np

from seqmix.serve.progress.intervals import intervals
from tests.support.audits import population  # shared with the tests

SIZES, F1S = (3, 5, 10, 20, 50), (0.65, 0.84, 0.95)
KINDS = (
    (0.0, 0.7),
    (0.0, 8.0),
    (0.6, 2.0),
)  # the share of empty sentences, and how evenly hard they are


def measured(f1: float, empty: float, spread: float, n: int, draws: int) -> tuple[float, float]:
    """Share of intervals that hold the truth, and their mean width, over audits of n sentences."""
    counts, true = population(f1, empty, spread)
    picked = counts[np.random.default_rng(n).integers(len(counts), size=(n, draws))]
    said = [one for one in intervals(picked.transpose(0, 2, 1)) if one is not None]
    return float(np.mean([one.low <= true <= one.high for one in said])), float(
        np.mean([one.high - one.low for one in said])
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=6000)
    draws = parser.parse_args().draws
    print(f"| audit sentences | {' | '.join(map(str, SIZES))} |\n|---|{'---|' * len(SIZES)}")
    lowest = [1.0] * len(SIZES)
    for f1 in F1S:
        cells = []
        for at, n in enumerate(SIZES):
            held, widths = zip(*(measured(f1, *kind, n, draws) for kind in KINDS), strict=True)
            lowest[at] = min(lowest[at], *held)
            cells.append(f"{min(widths):.2f}–{max(widths):.2f}")
        print(f"| mean width at F1 {f1} | {' | '.join(cells)} |")
    shares = " | ".join(f"{np.floor(1000 * share) / 10:.1f} %" for share in lowest)
    print(f"| holds the truth, at the least | {shares} |")
