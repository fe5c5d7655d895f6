"""Run the targets one after another, say what was found, and add the totals to a table.

python -m fuzz --runs 10000                     # shared out over all targets
python -m fuzz --runs 10000 --target conll,api
python -m fuzz --replay FILE --target conll     # one input again, with its traceback
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fuzz.target import Target, attack
from fuzz.targets import TARGETS

COLUMNS = (
    "finished",
    "target",
    "executions",
    "findings",
    "slowest_s",
    "grown_mib",
    "seconds",
    "seed",
    "longest_bytes",
)
_DEATHS = 5  # of one target's process, after which it is left alone


def main() -> int:
    """The command: 1 when there is a finding."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Fuzz everything that reads what others wrote."
    )
    parser.add_argument(
        "--runs", type=int, default=10_000, help="executions, over all targets together"
    )
    parser.add_argument("--target", default="all", help=f"all, or some of {', '.join(TARGETS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=int, default=2048, help="bytes of an input at most")
    parser.add_argument(
        "--folder", type=Path, help="where inputs and findings are kept; a new one by default"
    )
    parser.add_argument(
        "--results", type=Path, help="a table to add the totals to, such as results/fuzz.csv"
    )
    parser.add_argument("--replay", type=Path, help="an input to try once")
    given = parser.parse_args()
    chosen = [
        TARGETS[name] for name in (TARGETS if given.target == "all" else given.target.split(","))
    ]
    if given.replay is not None:
        with tempfile.TemporaryDirectory() as place:
            attack(chosen[0], given.replay.read_bytes(), Path(place))
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="fuzz-"))
    shares = sum(target.share for target in chosen)
    found = []
    for target in chosen:
        found.append(
            fuzzed(
                target,
                max(1, round(given.runs * target.share / shares)),
                given.seed,
                folder / target.name,
                given.longest,
            )
        )
        print(" ".join(f"{key} {value}" for key, value in found[-1].items()), flush=True)
        if given.results is not None:
            _add(given.results, found[-1])
    total, bad = sum(row["executions"] for row in found), sum(row["findings"] for row in found)
    print(f"{total} executions, {bad} findings; in {folder}")
    return 1 if bad else 0


def fuzzed(target: Target, runs: int, seed: int, folder: Path, longest: int) -> dict[str, Any]:
    """A row of the table.

    A process that dies (out of memory, endless loop) is a finding, and another one goes on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    start, done, grown, deaths = time.monotonic(), 0, 0, 0
    slowest, findings = 0.0, set[str]()
    while done < runs and deaths < _DEATHS:
        (folder / "state.json").unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "fuzz.worker",
            target.name,
            str(runs - done),
            str(seed + deaths),
            str(folder),
            str(longest),
        ]
        with (folder / "log.txt").open("ab") as log:
            code = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
        state = (
            json.loads((folder / "state.json").read_text())
            if (folder / "state.json").exists()
            else {}
        )
        done += state.get("executions", 0)
        slowest, grown = max(slowest, state.get("slowest", 0.0)), max(grown, state.get("grown", 0))
        findings |= set(state.get("findings", {}).values())
        if code:
            deaths += 1
            findings.add(f"process died with {code}, input died-* in {folder}")
    for what in sorted(findings):
        print(f"{target.name}: {what}", flush=True)
    return {
        "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "target": target.name,
        "executions": done,
        "findings": len(findings),
        "slowest_s": round(slowest, 2),
        "grown_mib": grown,
        "seconds": round(time.monotonic() - start),
        "seed": seed,
        "longest_bytes": longest,
    }


def _add(path: Path, row: dict[str, Any]) -> None:
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    sys.exit(main())
