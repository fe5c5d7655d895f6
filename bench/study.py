"""Run the study of the recipe in the declared order, on one GPU; an interrupted one is resumed.

    python -m bench.study --data DATA --out sweeps [--workers 18] [--device cuda]

First the recipe as shipped and at a lower rate, on dev (experiments/study/shipped-or-slower.toml),
beside it the demo and tuned plain training on test. Then, on test, the recipe that the rule of that
file chooses. DATA holds the folders conll03, wnut17, genia2011, btc, wikigold and m2e2. Tables are
in OUT/NAME/results.csv from the first finished run on. With CUDA's multi-process service about
twice as many runs are finished.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from seqmix.app.sweep.table import Row, read_results

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = "3e-4"
CORPORA = ("conll03", "wnut17", "genia2011", "btc", "wikigold", "m2e2")


def chosen(rows: Sequence[Row]) -> str:
    """Return the arm that the rule of shipped-or-slower.toml chooses by dev F1.

    >>> chosen([])
    '3e-4'
    """
    scores: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        name = row["arm"].partition(" data=")[0]
        scores.setdefault(name, {}).setdefault(row["data"], []).append(float(row["dev_f1"]))
    best, most = SHIPPED, 0.5
    for name, by_corpus in scores.items():
        shipped = scores.get(SHIPPED, {})
        gains = [
            100 * (fmean(f1) - fmean(shipped[data]))
            for data, f1 in by_corpus.items()
            if data in shipped
        ]
        if name != SHIPPED and gains and min(gains) >= -0.5 and fmean(gains) >= most:
            best, most = name, fmean(gains)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=18)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    few = max(1, args.workers // 6)

    def start(name: str, workers: int, *more: str) -> subprocess.Popen[bytes]:
        file, folder = ROOT / "experiments" / f"{name}.toml", args.out / Path(name).name
        command = [
            sys.executable,
            "-m",
            "seqmix",
            "sweep",
            str(file),
            "--out",
            str(folder),
            "--data",
            str(args.data),
        ]
        return subprocess.Popen(
            [*command, "--workers", str(workers), "--device", args.device, *more]
        )

    beside = [start("demo", few), start("study/plain-test", few)]
    rest = max(1, args.workers - 2 * few)
    failed = start("study/shipped-or-slower", rest).wait()
    if not failed:
        arm = chosen(read_results([args.out / "shipped-or-slower" / "results.csv"]))
        print(f"chosen on dev: {arm}", flush=True)
        arms = ",".join([f"{arm} data={corpus}" for corpus in CORPORA] + [f"{arm} at 50"])
        failed = start("study/few-labels-test", rest, "--arms", arms).wait()
    failed = max([failed, *(process.wait() for process in beside)])
    sys.exit(failed)


if __name__ == "__main__":
    main()
