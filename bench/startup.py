"""CPU time until seqmix is ready, side by side.

python bench/startup.py [--runs 10]                # this source, beside what it imports only later
python bench/startup.py --sources BEFORE/src src   # `seqmix --help` from two source folders
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
HELP = ("-m", "seqmix", "--help")
STARTS = {
    "Python alone": ("-c", "pass"),
    "`import seqmix`": ("-c", "import seqmix"),
    "`import seqmix; seqmix.sample`": ("-c", "import seqmix; seqmix.sample"),
    "`seqmix --help`": HELP,
    "`import torch`": ("-c", "import torch"),
    "`import seqmix; seqmix.Tagger`": ("-c", "import seqmix; seqmix.Tagger"),
}
Start = tuple[Path, tuple[str, ...]]  # the source folder, and the words after `python`


def cpu_seconds(start: Start) -> float:
    """Start Python once; user and system time."""
    source, words = start
    before = os.times()
    subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": str(source.absolute())},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = os.times()
    return (
        after.children_user - before.children_user + after.children_system - before.children_system
    )


def medians(starts: Mapping[str, Start], runs: int) -> dict[str, float]:
    """Alternate between the starts, so that other load on the machine meets all of them."""
    for start in starts.values():
        cpu_seconds(start)  # writes the compiled modules
    times = [[cpu_seconds(start) for start in starts.values()] for _ in range(runs)]
    return dict(zip(starts, map(statistics.median, zip(*times, strict=True)), strict=True))


def main() -> None:
    """Print a line for each start."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sources", type=Path, nargs=2)
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.sources:
        starts = {str(source): (source, HELP) for source in arguments.sources}
    else:
        starts = {name: (ROOT / "src", words) for name, words in STARTS.items()}
    seconds = medians(starts, arguments.runs)
    first = next(iter(seconds.values()))
    for name, median in seconds.items():
        print(f"{name}: {median:.2f} s of CPU, {median / first:.1f} times the first")


if __name__ == "__main__":
    main()
