"""The promise of the numbers: one seed and one number of threads give the same bytes; another number of threads the same choices and F1.

Real runs of the command in processes of their own, with the starter, on a slice of the gazette.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import seqmix
from seqmix.data import formats

SLICE = {"train": 40, "dev": 10, "test": 40}
SETTINGS = (
    "loop.seed_size=20", "loop.rounds=1", "query.size=5", "training.epochs=5", "training.batch_size=2", "augment.rate=0.4",
)  # fmt: skip
CHANGING = {"timings.jsonl", "environment.json", "lock"}  # how long it took, and on what


def simulated(folder: Path, name: str, threads: int) -> Path:
    data = folder / "data"
    if not data.exists():
        for split, n in SLICE.items():
            formats.write(seqmix.sample(f"gazette:{split}")[:n], data / f"{split}.conll")
    command = [
        sys.executable,
        "-m",
        "seqmix",
        "simulate",
        "--data",
        str(data),
        "--preset",
        "demo",
        "--out",
        str(folder / name),
    ]
    changes = [word for change in (*SETTINGS, 'tagger.device="cpu"') for word in ("--set", change)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    subprocess.run(
        [*command, *changes, "--seed", "3"], check=True, env=environment, stderr=subprocess.DEVNULL
    )
    return folder / name


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name not in CHANGING
    }


def rounds(folder: Path, file: str = "rounds.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / file).read_text().splitlines()]


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Path:
    return simulated(tmp_path_factory.mktemp("determinism"), "first", 1)


def test_two_runs_with_one_seed_and_as_many_threads_are_the_same_bytes(first: Path) -> None:
    second = simulated(first.parent, "second", 1)

    before, after = contents(first), contents(second)
    assert {
        "rounds.jsonl",
        "generated.jsonl",
        "model/model.safetensors",
        "model/tagger.json",
    } <= set(before)
    assert [
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    ] == []
    assert (
        rounds(first)[-1]["test"]["f1"] > 0.1
    )  # it learned something: else all of this would be said of nothing


@pytest.mark.slow  # two threads on cores that others use wait for each other
def test_another_number_of_threads_makes_the_same_choices_and_the_same_f1_to_the_rounding(
    first: Path,
) -> None:
    """Sums in another order differ in the last digits of a float: a score may move by a millionth, a choice or a tag must not."""
    other = simulated(first.parent, "two", 2)

    for one, two in zip(rounds(first), rounds(other), strict=True):
        assert one["chosen"] == two["chosen"]
        assert one["scores"] == pytest.approx(two["scores"], rel=1e-3)
        for split in ("dev", "test"):
            assert 100 * one[split]["f1"] == pytest.approx(100 * two[split]["f1"], abs=0.1)
    made = [
        [(line["lineage"]["parents"], line["tokens"]) for line in rounds(folder, "generated.jsonl")]
        for folder in (first, other)
    ]
    assert made[0] == made[1]
