"""Training on cores that others use too: CPU and wall seconds, by how threads wait for each other.

python bench/busy.py [--steps 20] [--repeats 3] [--load 2] [--arms 1 2 2-passive 2-shipped]

Every training is a process of its own, since OpenMP reads its settings when torch is loaded. The
arms alternate, without and with the load, so that whatever else the machine does falls on all of
them; the last column says how many cores that took.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from common import record, show

_ARMS: dict[str, tuple[str, dict[str, str]]] = {  # what is imported first, and the environment
    "1": ("torch", {"OMP_NUM_THREADS": "1"}),
    "2": ("torch", {"OMP_NUM_THREADS": "2"}),  # as torch comes
    "2-active": ("torch", {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "active"}),
    "2-spin-10000": ("torch", {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": "10000"}),
    "2-spin-1000": ("torch", {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": "1000"}),
    "2-passive": ("torch", {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}),
    "2-shipped": ("seqmix", {"OMP_NUM_THREADS": "2"}),
}
_READ = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_TRAINING = """
import json, sys, time
import {first}
import numpy, seqmix
steps = int(sys.argv[1])
data = seqmix.sample("gazette:train")
seqmix.Tagger(head="linear", settings=seqmix.Settings(steps=1)).fit(
    data, numpy.random.default_rng(0)
)
tagger = seqmix.Tagger(head="linear", settings=seqmix.Settings(steps=steps))
wall, cpu = time.perf_counter(), time.process_time()
tagger.fit(data, numpy.random.default_rng(0))
print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))
"""


def train(first: str, environment: dict[str, str], steps: int) -> tuple[float, float, float]:
    """CPU and wall seconds of one training, and the cores that other processes used meanwhile."""
    clean = {name: value for name, value in os.environ.items() if name not in _READ}
    before, begun, mine = _busy(), time.perf_counter(), _children()
    command = [sys.executable, "-c", _TRAINING.format(first=first), str(steps)]
    cpu, wall = json.loads(
        subprocess.run(
            command, env=clean | environment, check=True, capture_output=True, text=True
        ).stdout
    )
    return cpu, wall, (_busy() - before - (_children() - mine)) / (time.perf_counter() - begun)


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that do nothing but count, each worth a core."""
    ends_with_us = (
        "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
    )
    loops = [subprocess.Popen([sys.executable, "-c", ends_with_us]) for _ in range(processes)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _busy() -> float:
    """CPU seconds that this machine has spent on anything so far."""
    user, nice, system, _, _, irq, soft = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:8]
    )
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--load", type=int, default=2, help="busy processes in the loaded runs")
    parser.add_argument(
        "--arms",
        nargs="+",
        choices=list(_ARMS),
        default=["1", "2", "2-passive", "2-shipped"],
        help="threads and how they wait",
    )
    args = parser.parse_args()
    seen: dict[tuple[str, int], list[tuple[float, float, float]]] = defaultdict(list)
    for _ in range(args.repeats):
        for name in args.arms:
            for processes in (0, args.load):
                with load(processes):
                    seen[name, processes].append(train(*_ARMS[name], args.steps))
                cpu, wall, others = seen[name, processes][-1]
                print(
                    f"{name}, {processes} busy processes: CPU {cpu:.1f} s, wall {wall:.1f} s, "
                    f"others {others:.1f} cores",
                    flush=True,
                )
    rows: list[list[object]] = []
    for name in args.arms:
        (cpu, wall, others), (cpu_loaded, wall_loaded, others_loaded) = (
            tuple(median(column) for column in zip(*seen[name, processes], strict=True))
            for processes in (0, args.load)
        )
        ratio = median(
            beside[0] / alone[0]
            for alone, beside in zip(seen[name, 0], seen[name, args.load], strict=True)
        )
        rows.append(
            [name, f"{cpu:.1f} s", f"{cpu_loaded:.1f} s", f"{ratio:.2f}×",
             f"{wall:.1f} s", f"{wall_loaded:.1f} s", f"{others:.1f}, {others_loaded:.1f}"]
        )  # fmt: skip
        note = (
            f"{args.steps} steps beside {args.load} busy processes, peer: without them; "
            f"median of {args.repeats}; wall {wall_loaded:.1f} s against {wall:.1f} s; "
            f"cores used by others {others_loaded:.1f} and {others:.1f}"
        )
        record("busy", f"CPU time, threads {name}", cpu_loaded, "s", peer=cpu, note=note)
    show(
        ["setting", "CPU", "CPU, loaded", "ratio", "wall", "wall, loaded", "cores used by others"],
        rows,
    )


if __name__ == "__main__":
    main()
