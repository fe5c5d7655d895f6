"""CPU time of a training step with oneDNN's matrix products and with torch's, in turn.

python bench/train_products.py [--sizes 10 64] [--steps 15] [--rounds 3] [--data CONLL03]

Gradients included; what is printed is the least of the rounds, for this kind of CPU.
"""

from __future__ import annotations

import argparse
import time
from unittest.mock import patch

import numpy as np
from torch import nn

from common import load, record, show
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.on_cpu import OneDNNLinear

WAYS = {"oneDNN": OneDNNLinear.forward, "torch": nn.Linear.forward}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 64], help="sentences")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", default=None)
    args = parser.parse_args()
    corpus, rows = load(args.data), []
    for size in args.sizes:
        took = {
            way: min(seconds(corpus, size, args.steps, way) for _ in range(args.rounds))
            for way in WAYS
        }
        ratio = took["torch"] / took["oneDNN"]
        rows.append([size, *(f"{1000 * took[way]:.0f} ms" for way in WAYS), f"{ratio:.2f}×"])
        record(
            "training products",
            f"{corpus.name}, {size} sentences",
            took["oneDNN"],
            "s",
            peer=took["torch"],
            note="CPU time of a step, one thread; beside torch's products",
        )
    show(["sentences", *WAYS, "ratio"], rows)


def seconds(corpus, size: int, steps: int, way: str) -> float:
    """Return the CPU seconds of a step."""
    with patch.object(OneDNNLinear, "forward", WAYS[way]):
        tagger = Tagger(head="crf", settings=Settings(steps=2), device="cpu")
        tagger.fit(corpus.train[:size], np.random.default_rng(0))
        tagger.settings = Settings(steps=steps)
        start = time.process_time()
        tagger.fit(corpus.train[:size], np.random.default_rng(0), warm=True)
        return (time.process_time() - start) / steps


if __name__ == "__main__":
    main()
