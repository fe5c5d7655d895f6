"""The tables and figures of docs/results.md come from results/*.csv, and the page quotes them."""

from __future__ import annotations

import csv
import filecmp
import re
import subprocess
import sys
from pathlib import Path

import pytest

import results_data as data

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
COLUMNS = (
    "experiment",
    "arm",
    "seed",
    "data",
    "encoder",
    "labeled",
    "tokens",
    "generated",
    "asked",
    "dev_f1",
    "test_f1",
    "steps",
    "workers",
    "finished",
)


def write_runs(folder: Path, name: str, runs: list[dict[str, object]]) -> None:
    """A sweep's table with what matters, the rest filled in."""
    usual = {
        "experiment": name,
        "data": "conll03",
        "encoder": "starter",
        "labeled": 200,
        "tokens": 2000,
        "generated": 40,
        "asked": 40,
        "dev_f1": 0.5,
        "steps": 80,
        "workers": 1,
        "finished": "2026-11-15T00",
    }
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({**usual, **run} for run in runs)


def pairs(differences: list[float], **of_sub: object) -> list[dict[str, object]]:
    return [
        run
        for seed, difference in enumerate(differences)
        for run in (
            {"arm": "none", "seed": seed, "test_f1": 0.7, "generated": 0},
            {"arm": "sub", "seed": seed, "test_f1": 0.7 + difference / 100, **of_sub},
        )
    ]


def test_every_table_and_figure_is_written_again_byte_for_byte(tmp_path):
    tables, figures = tmp_path / "tables", tmp_path / "img"
    figures.mkdir()
    command = [sys.executable, ROOT / "scripts" / "results.py"]
    subprocess.run([*command, "--tables", tables, "--figures", figures], check=True)

    for fresh, kept in ((tables, ROOT / "results" / "tables"), (figures, ROOT / "docs" / "img")):
        names = sorted(path.name for path in fresh.iterdir())
        stale = [
            name for name in names if not filecmp.cmp(fresh / name, kept / name, shallow=False)
        ]
        assert names and not stale
    kept = {path.name for path in (ROOT / "results" / "tables").iterdir()}
    assert kept == {path.name for path in tables.iterdir()}


def test_every_row_on_the_page_is_a_row_of_a_table():
    tables = [path.read_text(encoding="utf-8") for path in (ROOT / "results/tables").iterdir()]
    rows = {line for table in tables for line in table.splitlines() if line.startswith("|")}
    quoted = [line for line in PAGE.splitlines() if line.startswith("|")]

    assert len(quoted) > 20
    assert not [line for line in quoted if line not in rows]


def test_the_page_is_two_pages():
    assert len(PAGE.splitlines()) <= 150


def test_the_counts_in_the_text_are_those_of_the_comparisons():
    comparisons = data.seqmix_comparisons(data.read_tables(ROOT / "results"))
    curves = [c for c in comparisons if c.measure == "curve"]
    tested = [c.corrected for c in comparisons if c.corrected == c.corrected]

    assert f"{sum(c.negligible for c in curves)} of {len(curves)} settings" in PAGE
    assert f"in {sum(c.interval.high < 1 for c in curves)} even" in PAGE
    assert re.search(r"Eight have enough seeds .* smallest p is 0\.64", PAGE)
    assert len(tested) == 8
    assert round(min(tested), 2) == 0.64


def test_a_difference_is_paired_by_seed(tmp_path):
    write_runs(tmp_path, "conll03-main", pairs([1.0, 2.0, 3.0]))

    (comparison, *_) = data.seqmix_comparisons(data.read_tables(tmp_path))

    assert comparison.differences == pytest.approx((1.0, 2.0, 3.0))
    assert comparison.interval.mean == pytest.approx(2.0)
    assert not comparison.negligible


def test_runs_with_other_steps_are_not_compared(tmp_path):
    write_runs(tmp_path, "conll03-main", pairs([1.0, 2.0, 3.0], steps=90))

    assert data.seqmix_comparisons(data.read_tables(tmp_path)) == []


def test_an_arm_that_generated_next_to_nothing_is_left_out(tmp_path):
    write_runs(tmp_path, "conll03-main", pairs([1.0, 2.0, 3.0], generated=1))

    assert data.seqmix_comparisons(data.read_tables(tmp_path)) == []


def test_compiled_runs_of_genia_are_left_out(tmp_path):
    write_runs(tmp_path, "genia-main", pairs([1.0, 2.0], finished="2026-11-16T02:10"))

    assert "sub" not in data.read_tables(tmp_path)["genia-main"]


def test_small_differences_are_negligible_and_many_seeds_are_corrected_together(tmp_path):
    write_runs(tmp_path, "conll03-main", pairs([0.3, 0.2, 0.4, 0.3, 0.2, 0.4, 0.3]))
    write_runs(tmp_path, "webpage-main", pairs([3.0, 2.9, 3.2, 3.1, 2.8, 3.0, 3.3]))

    small, large = data.seqmix_comparisons(data.read_tables(tmp_path))

    assert small.negligible and not large.negligible
    assert small.corrected == large.corrected == pytest.approx(2 * 2 / 2**7)
