r"""Generation at scale, with the starter models: time and memory of N accepted sentences.

python bench/generate_many.py [--labeled 5000 10000 20000] [--asked 2500 5000 10000] \
    [--data ../shared/data/conll03]
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import torch

from common import load, record, show
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.seqmix import SeqMix
from seqmix.augment.table_sources import encoder_table
from seqmix.data import formats
from seqmix.data.sentence import Sentence


def everything(folder: str | None) -> list[Sentence]:
    """All sentences of the corpus, whatever their split: this measures time, not F1."""
    corpus = load(folder)
    dev = (
        list(formats.read(Path(folder) / "valid.txt"))
        if folder and (Path(folder) / "valid.txt").exists()
        else []
    )
    return [*corpus.train, *corpus.test, *dev]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labeled", type=int, nargs="+", default=[5000, 10000, 20000])
    parser.add_argument("--asked", type=int, nargs="+", default=[2500, 5000, 10000])
    parser.add_argument(
        "--data", default=None, help="a folder with CoNLL-03's train.txt, valid.txt and test.txt"
    )
    args = parser.parse_args()
    sentences = everything(args.data)
    table = encoder_table()
    rows = []
    for labeled, asked in [
        *((n, args.asked[0]) for n in args.labeled),
        *((args.labeled[-1], n) for n in args.asked[1:]),
    ]:
        judge = Perplexity()
        judge.scores(sentences[:1])
        start = time.perf_counter()
        made = SeqMix(table=table, discriminator=judge).augment(
            sentences[:labeled], asked, np.random.default_rng(0)
        )
        seconds = time.perf_counter() - start
        gpu = (
            f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB"
            if torch.cuda.is_available()
            else "–"
        )
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        counts = made.counts
        where = "cuda" if torch.cuda.is_available() else "cpu"
        record(
            "generate, scaling",
            f"{where}, {asked} from {labeled}",
            1e3 * seconds / len(made),
            "ms each",
            note=f"{resident:.1f} GiB resident",
        )
        rows.append(
            [
                labeled,
                asked,
                len(made),
                counts["pairs"],
                counts["scored"],
                f"{seconds:.1f} s",
                f"{1e3 * seconds / len(made):.1f} ms",
                f"{resident:.1f} GiB",
                gpu,
            ]
        )
    show(["labeled", "asked", "made", "pairs", "scored", "time", "each", "resident", "GPU"], rows)
