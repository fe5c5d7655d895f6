"""Kill a run at random moments, resume it, and compare each byte with an undisturbed run's.

python bench/kills.py --data CONLL03 --kills 20
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
from pathlib import Path

_MAY_DIFFER = ("timings.jsonl", "environment.json", "lock")  # how long things took, and where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="gazette", help="a data folder, or the sample gazette")
    parser.add_argument("--preset", default=None, help="conll03, or demo for the gazette")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--after",
        type=float,
        nargs=2,
        default=(15, 200),
        help="seconds between a start and its kill",
    )
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    preset = given.preset or ("demo" if given.data == "gazette" else "conll03")
    with tempfile.TemporaryDirectory() as place:
        whole, broken = Path(place) / "whole", Path(place) / "broken"
        command = [
            sys.executable,
            "-m",
            "seqmix",
            "simulate",
            "--preset",
            preset,
            "--data",
            given.data,
            "--seed",
            "0",
            "--out",
        ]
        subprocess.run([*command, str(whole)], check=True, stderr=subprocess.DEVNULL)
        killed = _killed(
            [*command, str(broken)], given.kills, given.after, random.Random(given.seed)
        )
        subprocess.run([*command, str(broken)], check=True, stderr=subprocess.DEVNULL)
        one, other = _bytes(whole), _bytes(broken)
        differ = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        result = "all the same" if not differ else "different: " + ", ".join(differ)
        print(f"killed {killed} times; {len(one)} files, {result}")
        sys.exit(bool(differ))


def _killed(command: list[str], kills: int, after: tuple[float, float], rng: random.Random) -> int:
    """How often it was killed before it ended by itself."""
    for number in range(kills):
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            child.wait(rng.uniform(*after))
            return number
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    return kills


def _bytes(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name not in _MAY_DIFFER)
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


if __name__ == "__main__":
    main()
