"""How good the tagger is: F1 on the test set after plain training on a few sentences, over seeds.

python bench/f1.py [--sizes 200 700] [--seeds 3] [--head linear] [--data ../shared/data/conll03]
"""

from __future__ import annotations

import argparse

import numpy as np

from common import load, show
from seqmix.data.scoring import score
from seqmix.tagger import Settings, Tagger

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 700])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--head", default="linear")
    parser.add_argument(
        "--data",
        default=None,
        help="a folder with CoNLL-03's train.txt and test.txt; the gazette without it",
    )
    args = parser.parse_args()
    corpus = load(args.data)
    gold = [s.tags for s in corpus.test]
    rows = []
    for n in args.sizes:
        legal, plain = [], []
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            chosen = [corpus.train[i] for i in rng.permutation(len(corpus.train))[:n]]
            tagger = Tagger(head=args.head, settings=Settings(epochs=args.epochs)).fit(
                chosen, rng, corpus.tags
            )
            for scores, constrained in ((legal, True), (plain, False)):
                found = [
                    s.tags
                    for s in tagger.predict([s.unlabeled() for s in corpus.test], legal=constrained)
                ]
                scores.append(100 * score(gold, found).f1)
        each = " ".join(f"{f1:.1f}" for f1 in legal)
        rows.append(
            [
                corpus.name,
                n,
                args.head,
                f"{np.mean(legal):.1f}",
                f"{np.std(legal, ddof=1):.1f}",
                each,
                f"{np.mean(plain):.1f}",
            ]
        )
    show(["data", "sentences", "head", "F1", "s.d.", "by seed", "F1 token-wise"], rows)
