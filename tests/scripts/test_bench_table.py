"""The table the benchmarks write, and that the page of the sweeps leaves it alone."""

from __future__ import annotations

import csv
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from results_data import read_tables

ROOT = Path(__file__).parents[2]
Record = Callable[..., None]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.syspath_prepend(
        ROOT / "bench"
    )  # for a moment only: its files have the names of our packages
    found: Record = import_module("common").record
    return found


def read(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_case_has_one_row_with_its_ratio_to_the_peer_or_else_to_the_limit(
    record: Record, tmp_path: Path
) -> None:
    table = tmp_path / "results" / "bench.csv"

    record("train", "700, cpu", 9.0, "s", peer=3.0, table=table)
    record("pool", "build", 30.0, "s", limit=20.0, note="a, b", table=table)
    record("train", "700, cpu", 4.5, "s", peer=3.0, limit=1.0, table=table)
    record("train", "3453, cpu", 20.0, "s", table=table)

    assert [tuple(row.values()) for row in read(table)] == [
        ("pool", "build", "30", "", "20", "s", "1.5", "a, b"),
        ("train", "700, cpu", "4.5", "3", "1", "s", "1.5", ""),
        ("train", "3453, cpu", "20", "", "", "s", "", ""),
    ]


def test_the_tables_of_the_sweeps_do_not_take_it_for_a_sweep(
    record: Record, tmp_path: Path
) -> None:
    record("pool", "build", 1.0, "s", table=tmp_path / "bench.csv")

    assert read_tables(tmp_path) == {}
