"""The tables of docs/defaults.md are what the script prints from the sweeps' results."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.app.sweep.spec import read_sweep

ROOT = Path(__file__).parents[2]

import defaults  # noqa: E402  a script of the project's own

PAGE = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "table",
    [
        defaults.plain_table(),
        defaults.rates_table(),
        defaults.sizes_table(),
        defaults.gains_table(),
        defaults.ladder_table("dev"),
        [defaults.pairing_line()],
    ],
)
def test_every_table_of_the_page_is_what_the_results_say(table):
    assert "\n".join(table) in PAGE


@pytest.mark.parametrize(
    "path", sorted((ROOT / "experiments" / "defaults").glob("*.toml")), ids=lambda path: path.stem
)
def test_the_sweep_files_still_have_the_configs_their_results_were_made_with(path):
    arms = {arm.name: arm.digest for arm in read_sweep(path).arms}
    results = ROOT / "results" / "defaults" / f"{path.stem}.csv"
    rows = (
        [line.split(",") for line in results.read_text(encoding="utf-8").splitlines()[1:]]
        if results.exists()
        else []
    )

    assert all(arms[row[1]] == row[3] for row in rows)


def test_no_seed_of_another_experiment_chose_a_default():
    """The pairing of arms is looked at on the paper's seeds; it chooses nothing."""
    chosen_with = {
        seed
        for name in ("defaults", "defaults-plain")
        for seeds in defaults.read(name).values()
        for seed in seeds
    }
    others = {
        seed for path in (ROOT / "experiments").glob("*.toml") for seed in read_sweep(path).seeds
    }

    assert not chosen_with & others
