"""A round of the loop (train, score the pool, choose) against one made of the usual parts.

python bench/loop.py [--labeled 200] [--pool 2000] [--epochs 3] [--data ../shared/data/conll03]

The peer trains with the Hugging Face Trainer and scores as small-text describes it
(see bench/train.py and bench/score.py).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from common import load, record, show
from score import ours as scored
from score import per_sentence
from seqmix.tagger import Settings, Tagger
from train import trainer


def timed(work) -> tuple[float, object]:
    """Seconds, and what came out."""
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labeled", type=int, default=200)
    parser.add_argument("--pool", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--data", default=None)
    args = parser.parse_args()
    corpus = load(args.data)
    labeled, pool = (
        corpus.train[: args.labeled],
        [s.unlabeled() for s in corpus.train[args.labeled : args.labeled + args.pool]],
    )
    small = type(corpus)(corpus.name, labeled, corpus.test[:10], corpus.tags)
    trainer(small, 32, 1, 0)  # warm
    training, tagger = timed(
        lambda: Tagger(settings=Settings(epochs=args.epochs)).fit(
            labeled, np.random.default_rng(0), corpus.tags
        )
    )
    scoring, _ = timed(lambda: np.argsort(-scored(tagger, pool))[:100])
    their_training = trainer(small, args.labeled, args.epochs, 0)[0]
    their_scoring, _ = timed(lambda: np.argsort(-per_sentence(tagger, pool))[:100])
    us, them = training + scoring, their_training + their_scoring
    show(
        ["part", "seqmix", "usual parts", "ratio"],
        [
            [
                "training",
                f"{training:.1f} s",
                f"{their_training:.1f} s",
                f"{their_training / training:.1f}×",
            ],
            [
                "scoring",
                f"{scoring:.1f} s",
                f"{their_scoring:.1f} s",
                f"{their_scoring / scoring:.1f}×",
            ],
            ["round", f"{us:.1f} s", f"{them:.1f} s", f"{them / us:.1f}×"],
        ],
    )
    where = "cuda" if torch.cuda.is_available() else "cpu"
    record(
        "loop", f"{where}, a round with {len(labeled)} labeled, {len(pool)} in the pool",
        us, "s", peer=them,
        note=f"peer: Trainer and per-sentence scoring; {args.epochs} epochs; "
        f"scoring alone {their_scoring / scoring:.1f} times",
    )  # fmt: skip
