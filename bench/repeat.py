r"""Does a training repeat while others run beside it, or do some end with other weights?

python bench/repeat.py [--processes 16] [--steps 380] [--size 1000] [--data GENIA2011] \
    [--attention math] [--poison]

The processes do the same work at once. They share a GPU as the environment says: through CUDA MPS
where its daemon runs, each with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of it, else in turns. `--poison`
fills free memory with NaN before every stretch of steps instead: what reads before it writes would
show.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import zlib
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from common import show
from seqmix.data import formats
from seqmix.data.tagset import TagSet
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.training import cuda_graphs

_DATA = Path(__file__).parents[2] / "shared" / "data" / "genia2011"


def trained(args: argparse.Namespace) -> list[str]:
    """The checksum of the weights after each of two trainings, and the seconds it took."""
    sentences = list(formats.read(args.data / "train.tsv"))
    tags = TagSet.of(sentences)
    chosen = [
        sentences[i] for i in np.random.default_rng(0).permutation(len(sentences))[: args.size]
    ]
    found = []
    for _ in range(2):
        if args.gate is not None and not found:
            _wait(args.gate)
        began = time.perf_counter()
        with sdpa_kernel(SDPBackend.MATH) if args.attention == "math" else nullcontext():
            tagger = Tagger(settings=Settings(steps=args.steps)).fit(
                chosen, np.random.default_rng(1), tags
            )
        weights = [value.cpu().numpy().tobytes() for value in tagger.network.state_dict().values()]
        found.append(f"{zlib.crc32(b''.join(weights))} {time.perf_counter() - began:.3f}")
    return found


def _wait(gate: Path) -> None:
    """Until all are ready."""
    gate.with_suffix(f".{os.getpid()}").touch()
    while not gate.exists():
        time.sleep(0.01)


def poisoned() -> None:
    """Free memory of the GPU is NaN before every stretch of steps."""
    run = cuda_graphs.Stage.run

    def spoiled(*given: Any) -> list[float]:
        sizes = [2**k for k in range(7, 26)] * 3 + [3 * 2**k for k in range(6, 22)] * 2
        for tensor in [torch.full((n,), float("nan"), device="cuda") for n in sizes]:
            del tensor
        return run(*given)

    cuda_graphs.Stage.run = spoiled  # type: ignore[method-assign]


def beside(args: argparse.Namespace) -> list[str]:
    """What all processes found."""
    with TemporaryDirectory() as folder:
        gate = Path(folder) / "gate"
        command = [sys.executable, __file__, *sys.argv[1:], "--gate", str(gate)]
        others = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            for _ in range(args.processes)
        ]
        while len(list(gate.parent.iterdir())) < len(others) and all(
            other.poll() is None for other in others
        ):
            time.sleep(0.1)
        gate.touch()
        return [line for other in others for line in other.communicate()[0].splitlines()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--steps", type=int, default=380)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=_DATA)
    parser.add_argument("--attention", choices=("as it is", "math"), default="as it is")
    parser.add_argument("--poison", action="store_true")
    parser.add_argument("--gate", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.gate is not None:
        if args.poison:
            poisoned()
        print(*trained(args), sep="\n")
    else:
        sums, seconds = zip(*(line.split() for line in beside(args)), strict=True)
        alike = Counter(sums).most_common(1)[0][1]
        took = f"{mean(map(float, seconds)):.1f} s"
        show(
            ["trainings", "that differ from most", "a training, beside the others"],
            [[str(len(sums)), str(len(sums) - alike), took]],
        )
