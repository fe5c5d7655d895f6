"""The promise of the numbers: one seed and one number of threads give the same bytes.

Another number of threads gives the same choices and F1. Runs of the real command, here and in
processes of their own, on a slice of the gazette: with a tiny encoder, and for .ci/run with the
starter.
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
from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.starter import STARTER
from tests.support import tiny

SLICE = {"train": 40, "dev": 10, "test": 40}
SETTINGS = (
    "loop.seed_size=20", "loop.rounds=1", "query.size=5",
    "training.epochs=5", "training.batch_size=2", "augment.rate=0.4",
)  # fmt: skip
CHANGING = {"timings.jsonl", "environment.json", "lock"}  # how long it took, and on what


def simulated(folder: Path, name: str, encoder: str, threads: int | None = None) -> Path:
    """Run the command: here, or in a process of its own with this number of threads."""
    data = folder / "data"
    if not data.exists():
        for split, n in SLICE.items():
            formats.write(seqmix.sample(f"gazette:{split}")[:n], data / f"{split}.conll")
    out = folder / name
    settings = (*SETTINGS, 'tagger.device="cpu"', f'tagger.encoder="{encoder}"')
    if encoder != STARTER:  # random weights learn at a higher rate
        settings = (*settings, "training.lr=3e-3", "training.epochs=13")
    command = ["simulate", "--data", str(data), "--out", str(out), "--preset", "demo"]
    command += ["--seed", "3", *(word for setting in settings for word in ("--set", setting))]
    if threads is None:
        assert run(command) == 0
    else:
        variables = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        subprocess.run(
            [sys.executable, "-m", "seqmix", *command],
            check=True,
            env=os.environ | variables,
            stderr=subprocess.DEVNULL,
        )
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name not in CHANGING
    }


def rounds(folder: Path, file: str = "rounds.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / file).read_text().splitlines()]


@pytest.fixture(scope="module", params=["tiny", pytest.param(STARTER, marks=pytest.mark.ci)])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == STARTER:
        return STARTER
    return tiny.write_bert(tmp_path_factory.mktemp("encoders") / "tiny")


@pytest.fixture(scope="module")
def first(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("determinism"), "first", encoder)


def test_two_runs_with_one_seed_and_as_many_threads_are_the_same_bytes(
    first: Path, encoder: str
) -> None:
    second = simulated(first.parent, "second", encoder, threads=1)

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
    first: Path, encoder: str
) -> None:
    """Sums in another order differ in the last digits of a float.

    A score may move by a millionth, a choice or a tag must not.
    """
    other = simulated(first.parent, "two", encoder, threads=2)

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
