"""Ways to score faster on a CPU: float32 as it is, int8 weights, a compiled encoder.

python bench/faster_cpu.py [--size 1000] [--data ../shared/data/conll03]

Each is tried in a process of its own, since a CPU may advertise instructions it lacks and dies of
them. Each prints sentences a second and how its ranking by token entropy differs from float32's:
rank correlation, and the share of the best tenth that stays.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings

import numpy as np
from scipy.stats import spearmanr

from common import load, record, show
from seqmix.tagger import Settings, Tagger

WAYS = ("float32", "int8", "compiled")


def changed(tagger: Tagger, way: str) -> Tagger:
    """The encoder in another form."""
    if way == "compiled":
        tagger.network.encoder.compile(dynamic=True)
    return tagger.int8() if way == "int8" else tagger


def tried(way: str, size: int, data: str | None) -> dict[str, object]:
    """Sentences a second, in the better of two passes after one that does not count; the scores."""
    corpus = load(data)
    tagger = Tagger(settings=Settings(epochs=5), device="cpu").fit(
        corpus.train[:200], np.random.default_rng(0), corpus.tags
    )
    sentences = [s.unlabeled() for s in corpus.train[200 : 200 + size]]
    tagger = changed(tagger, way)
    start = time.perf_counter()
    scores = list(tagger.unsure(sentences, "entropy"))
    first, seconds = time.perf_counter() - start, []
    for _ in range(2):
        start = time.perf_counter()
        scores = list(tagger.unsure(sentences, "entropy"))
        seconds.append(time.perf_counter() - start)
    return {"rate": len(sentences) / min(seconds), "first": first, "scores": scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--data", default=None)
    parser.add_argument("--way", default=None, help="used by itself")
    args = parser.parse_args()
    if args.way:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(tried(args.way, args.size, args.data)))
        return
    rows, found = [], {}
    for way in WAYS:
        command = [
            sys.executable,
            __file__,
            "--way",
            way,
            "--size",
            str(args.size),
            *(["--data", args.data] if args.data else []),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or [f"killed by signal {-done.returncode}"])[-1]
            rows.append([way, "–", "–", "–", "–", "–", why[:80]])
            continue
        found[way] = json.loads(done.stdout.splitlines()[-1])
        scores, plain = np.array(found[way]["scores"]), np.array(found["float32"]["scores"])
        tenth = len(plain) // 10
        kept = len({*np.argsort(-scores)[:tenth]} & {*np.argsort(-plain)[:tenth]}) / tenth
        rank, apart = spearmanr(scores, plain).statistic, np.abs(scores - plain).max()
        ratio = found[way]["rate"] / found["float32"]["rate"]
        rows.append(
            [
                way,
                f"{found[way]['rate']:.0f}/s",
                f"{ratio:.2f}×",
                f"{rank:.4f}",
                f"{kept:.0%}",
                f"{found[way]['first']:.1f} s",
                "",
            ]
        )
        note = (
            f"peer: float32; rank correlation {rank:.4f}, best tenth kept {kept:.0%}, "
            f"scores apart at most {apart:.1e}"
        )
        record(
            "faster on the CPU",
            way,
            found[way]["rate"],
            "1/s",
            peer=found["float32"]["rate"],
            note=note,
        )
    show(
        [
            "way",
            "sentences",
            "of float32",
            "rank correlation",
            "best tenth kept",
            "first pass",
            "why not",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
