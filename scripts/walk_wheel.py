"""Install the wheel into an empty environment and use it outside of any checkout.

python scripts/walk_wheel.py                          # with this Python; pip gets what it needs
python scripts/walk_wheel.py --python python3.13      # with another one
python scripts/walk_wheel.py --before torch==2.13.0   # first installs that, say a build for the CPU
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SENTENCE = "Lena Haugen left Oslo for a job at Acme Corp in Bergen."
STEPS = (  # the words after `python -m seqmix`, and what the output must contain
    ("", "Three commands to try"),
    ("train gazette:train --quick --limit LIMIT --out ner", "written to ner"),
    ("predict ner mine.txt --out mine.jsonl", "written to mine.jsonl"),
    ("annotate --help", "Label the sentences of a project"),
)


def build(source: Path, target: Path, kind: str) -> Path:
    """Build the `wheel` or the `sdist` of a folder."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target]
    subprocess.run(words, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (built,) = target.glob({"wheel": "*.whl", "sdist": "*.tar.gz"}[kind])
    return built


def empty_environment(folder: Path, python: str) -> Path:
    """Make a virtual environment; return its Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


def install(python: Path, wheel: Path, before: Sequence[str]) -> None:
    """Install the wheel and what it needs, with pip."""
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*words, *before, wheel], check=True)


def walk(python: Path, folder: Path, limit: int = 100) -> tuple[float, float]:
    """Train, tag a sentence, ask for help; return the wall and CPU seconds of that."""
    (folder / "mine.txt").write_text(SENTENCE + "\n", encoding="utf-8")
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    start, before = time.perf_counter(), os.times()
    for words, expected in STEPS:
        ended = subprocess.run(
            [python, "-m", "seqmix", *words.replace("LIMIT", str(limit)).split()],
            cwd=folder,
            env={**alone, "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        output = ended.stdout + ended.stderr
        if ended.returncode or expected not in output:
            raise SystemExit(f"seqmix {words} ended with {ended.returncode}:\n{output}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user
    return time.perf_counter() - start, cpu - before.children_system


def tags(folder: Path) -> list[tuple[str, str]]:
    """Return the tokens and tags that `walk` leaves."""
    (row,) = map(json.loads, (folder / "mine.jsonl").read_text(encoding="utf-8").splitlines())
    return list(zip(row["tokens"], row["ner_tags"], strict=True))


def main() -> None:
    """Build, install and walk, with times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--before", nargs="*", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seqmix-wheel-") as name:
        wheel = build(ROOT, Path(name) / "dist", "wheel")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        start = time.perf_counter()
        python = empty_environment(Path(name) / "environment", arguments.python)
        install(python, wheel, arguments.before)
        print(f"installed in {time.perf_counter() - start:.0f} s", flush=True)
        (Path(name) / "here").mkdir()
        wall, cpu = walk(python, Path(name) / "here")
        print(" ".join(f"{token}/{tag}" for token, tag in tags(Path(name) / "here")))
        print(f"walked in {wall:.0f} s, {cpu:.0f} s of CPU")


if __name__ == "__main__":
    main()
