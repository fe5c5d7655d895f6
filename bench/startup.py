"""CPU time of `seqmix --help` from two source folders, side by side.

python bench/startup.py BEFORE/src src [--runs 10]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path


def cpu_seconds(source: Path) -> float:
    """Run `seqmix --help` once; user and system time."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "seqmix", "--help"],
        env={**os.environ, "PYTHONPATH": str(source.absolute())},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = os.times()
    return (
        after.children_user - before.children_user + after.children_system - before.children_system
    )


def main() -> None:
    """Alternate between the two folders, so that other load on the machine meets both."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    folders = (arguments.before, arguments.after)
    for folder in folders:
        cpu_seconds(folder)  # writes the compiled modules
    runs = [[cpu_seconds(folder) for folder in folders] for _ in range(arguments.runs)]
    before, after = (statistics.median(times) for times in zip(*runs, strict=True))
    print(f"{before:.3f} CPU s before, {after:.3f} after: {after / before:.2f}")


if __name__ == "__main__":
    main()
