r"""Whole runs of the loop: one alone from a cold start, and many side by side on one device.

python bench/simulate.py [--preset conll03] [--sweep experiments/conll03-main.toml] \
    [--seeds 5] [--workers 16] [--data FOLDER]

A run alone is `seqmix simulate` in a process of its own, start-up included. Side by side it is
`seqmix sweep`; on a GPU through CUDA MPS, which is started for it and stopped after it where it can
be.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from common import record, show

_DATA = Path(__file__).parents[2] / "shared" / "data"


@contextmanager
def shared_gpu(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of processes that share the GPU through a daemon of our own.

    It is empty where there is none to start.
    """
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None or not torch.cuda.is_available():
        yield {}
        return
    (folder / "mps").mkdir()
    own = {
        "CUDA_MPS_PIPE_DIRECTORY": str(folder / "mps"),
        "CUDA_MPS_LOG_DIRECTORY": str(folder / "mps"),
    }
    subprocess.run([control, "-d"], env=os.environ | own, check=True)
    try:
        yield own
    finally:
        subprocess.run([control], input="quit\n", text=True, env=os.environ | own, check=False)


def seconds(*arguments: object, environment: dict[str, str] | None = None) -> float:
    """What a command of ours takes."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "seqmix", *map(str, arguments)],
        env=os.environ | (environment or {}),
        check=True,
    )
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="conll03")
    parser.add_argument(
        "--sweep",
        type=Path,
        default=Path(__file__).parents[1] / "experiments" / "conll03-main.toml",
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument(
        "--data",
        type=Path,
        default=_DATA,
        help="the folder that holds conll03; the demo and the smoke sweep need none",
    )
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    where = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {os.cpu_count()} cores"
    data = args.data / args.preset if (args.data / args.preset).is_dir() else "gazette"
    with tempfile.TemporaryDirectory() as folder, shared_gpu(Path(folder)) as environment:
        alone = seconds(
            "simulate", "--preset", args.preset, "--data", data, "--out", f"{folder}/alone"
        )
        record(
            "simulate",
            f"{args.preset} preset alone, {device}",
            alone,
            "s",
            note=f"{where}; from a cold start",
        )
        spent = seconds(
            "sweep", args.sweep, "--data", args.data, "--seeds", args.seeds,
            "--workers", args.workers, "--out", f"{folder}/sweep",
            environment={"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", **environment},
        )  # fmt: skip
        with (Path(folder) / "sweep" / "results.csv").open(encoding="utf-8", newline="") as file:
            runs = len({(row["arm"], row["seed"]) for row in csv.DictReader(file)})
    rate = 60 * runs / spent
    told = (
        f"{where}{' with MPS' if environment else ''}; {runs} runs of {args.sweep.name} "
        f"in {spent:.0f} s, start-up included"
    )
    record(
        "simulate",
        f"{args.sweep.stem}, {args.workers} side by side, {device}",
        rate,
        "runs/min",
        note=told,
    )
    show(
        ["alone", f"{args.workers} side by side"], [[f"{alone:.1f} s", f"{rate:.1f} runs a minute"]]
    )
