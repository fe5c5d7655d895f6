"""The fuzz targets without the fuzzer: seeds, some mutations of them, and all old findings."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from fuzz.mutation import mutated
from fuzz.target import Finding, Target, attack
from fuzz.targets import TARGETS
from seqmix.data.formats import FORMATS
from seqmix.errors import DataError

REGRESSIONS = sorted(
    path for path in (Path(__file__).parents[2] / "fuzz" / "regressions").glob("*/*")
)
every = pytest.mark.parametrize("name", TARGETS)


def test_every_format_is_a_target_and_every_regression_has_one() -> None:
    assert set(FORMATS) <= set(TARGETS)
    assert {path.parent.name for path in REGRESSIONS} <= set(TARGETS)


@every
def test_good_input_is_taken_whole(name: str, tmp_path: Path) -> None:
    seeds = list(TARGETS[name].seeds())

    assert seeds
    for seed in seeds:
        TARGETS[name].run(seed, tmp_path)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_stays_mended(path: Path, tmp_path: Path) -> None:
    attack(TARGETS[path.parent.name], path.read_bytes(), tmp_path)


@every
def test_damaged_input_is_refused_in_one_line_or_taken(name: str, tmp_path: Path) -> None:
    target, rng = TARGETS[name], random.Random(11)
    seeds = list(islice(target.seeds(), 5))
    for _ in range(round(60 * target.share) + 5):
        attack(target, mutated(rng.choice(seeds), rng)[:4096], tmp_path)


@pytest.mark.parametrize(
    ("error", "match"),
    [
        (DataError("two\nlines"), "several lines"),
        (DataError("half \ud800"), "half a character"),
        (DataError("x" * 6000), "6000 characters"),
    ],
)
def test_a_message_that_is_not_one_short_line_is_a_finding(
    error: Exception, match: str, tmp_path: Path
) -> None:
    def run(data: bytes, folder: Path) -> None:
        raise error

    with pytest.raises(Finding, match=match):
        attack(Target("x", run, list), b"", tmp_path)


def test_any_other_exception_is_a_finding_of_its_own(tmp_path: Path) -> None:
    def run(data: bytes, folder: Path) -> None:
        data.index(b"x")

    with pytest.raises(ValueError, match="subsection not found"):
        attack(Target("x", run, list), b"", tmp_path)
