"""Run directories read back: what is grouped, what is averaged, what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqmix.errors import DataError, RunError, SeqMixError
from seqmix.report.curves import (
    aligned,
    as_csv,
    band,
    baseline,
    by_arm,
    curve,
    load_generated,
    load_run,
    load_runs,
    shared_split,
)
from tests.support.run_folders import run_directory


def changed(run: Path, line: int, **fields: Any) -> None:
    lines = (run / "rounds.jsonl").read_text().splitlines()
    lines[line - 1] = json.dumps({**json.loads(lines[line - 1]), **fields})
    (run / "rounds.jsonl").write_text("\n".join(lines) + "\n")


def test_repetitions_of_an_arm_stand_together_by_seed(tmp_path: Path) -> None:
    paths = [
        run_directory(tmp_path / f"{arm}{seed}", arm, seed)
        for seed in (1, 0)
        for arm in ("nte+sub", "nte")
    ]

    arms = by_arm(load_runs(paths))

    assert {arm: [run.seed for run in runs] for arm, runs in arms.items()} == {
        "nte+sub": [0, 1],
        "nte": [0, 1],
    }


def test_the_band_is_the_mean_over_seeds_at_each_number_of_labels(tmp_path: Path) -> None:
    runs = load_runs([run_directory(tmp_path / str(seed), seed=seed) for seed in range(3)])

    points = band(runs, "test", "tokens")

    assert [p.f1.mean for p in points] == pytest.approx(
        np.mean([curve(run, "test").y for run in runs], axis=0)
    )
    assert [p.x for p in points] == pytest.approx(
        np.mean([[r.tokens for r in run.rounds] for run in runs], axis=0)
    )
    assert all(p.f1.low < p.f1.mean < p.f1.high and p.f1.n == 3 for p in points)


def test_a_run_that_is_still_going_cuts_the_band_to_what_all_reached(tmp_path: Path) -> None:
    runs = load_runs(
        [
            run_directory(tmp_path / "a", seed=0, rounds=6),
            run_directory(tmp_path / "b", seed=1, rounds=3),
        ]
    )

    assert [point.x for point in band(runs, "dev")] == [200, 300, 400]


def test_runs_without_a_common_number_of_labels_are_refused(tmp_path: Path) -> None:
    first, second = (
        run_directory(tmp_path / "a", rounds=1),
        run_directory(tmp_path / "b", seed=1, rounds=1),
    )
    changed(second, 1, labeled=50)

    with pytest.raises(DataError, match="report them separately"):
        aligned(load_runs([first, second]))


def test_the_baseline_is_named_none_or_has_no_augmentation_or_comes_first(tmp_path: Path) -> None:
    sub = load_run(run_directory(tmp_path / "sub", "nte+sub", variant="sub"))
    plain = load_run(run_directory(tmp_path / "nte", "nte"))
    none = load_run(run_directory(tmp_path / "none", "none", variant="sub"))

    assert baseline(by_arm([sub, plain, none])) == "none"
    assert baseline(by_arm([sub, plain])) == "nte"
    assert baseline(by_arm([sub])) == "nte+sub"


def test_the_split_is_test_only_where_all_were_scored_on_it(tmp_path: Path) -> None:
    scored, unscored = (
        run_directory(tmp_path / "a"),
        run_directory(tmp_path / "b", seed=1, test=False),
    )

    assert shared_split(load_runs([scored])) == "test"
    assert shared_split(load_runs([scored, unscored])) == "dev"


def test_runs_scored_on_different_splits_are_not_mixed(tmp_path: Path) -> None:
    first, second = (
        run_directory(tmp_path / "a", rounds=1),
        run_directory(tmp_path / "b", seed=1, rounds=1, test=False),
    )
    changed(first, 1, dev=None)

    with pytest.raises(DataError, match="same split"):
        shared_split(load_runs([first, second]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format_version": 2}, "has format 2, written by a newer seqmix"),
        ({"labeled": None}, "line 2 has no round 1 with a good 'labeled'"),
        ({"labeled": "many"}, "line 2 has no round 1 with a good 'labeled'"),
        ({"labeled": 5}, ":2: .*at least the 200 labeled"),
        ({"dev": None, "test": None}, ':2: .*"dev" or "test"'),
        ({"dev": {"f1": "high"}}, "line 2 has no round 1 with a good 'dev'"),
        ({"seed": 8}, ":2: .*seed 0 as on the first line"),
    ],
)
def test_a_broken_round_is_refused_with_its_place(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    run = run_directory(tmp_path / "run")
    changed(run, 2, **fields)

    with pytest.raises(SeqMixError, match=message) as error:
        load_run(run)

    assert str(error.value).startswith(str(run)) and "\n" not in str(error.value)


def test_half_a_line_is_refused_with_its_place(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", rounds=1)
    with (run / "rounds.jsonl").open("a") as file:
        file.write('{"format_version": 1, "rou')

    with pytest.raises(RunError, match=r"rounds\.jsonl is damaged: line 2: "):
        load_run(run)


def test_times_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", rounds=1)
    (run / "timings.jsonl").write_text('{"round": 0, "seconds": {"train": "long"}}\n')

    with pytest.raises(RunError, match=r"timings\.jsonl is damaged"):
        load_run(run)


def test_a_directory_without_a_round_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no round is finished"):
        load_run(tmp_path)
    (tmp_path / "rounds.jsonl").touch()
    with pytest.raises(DataError, match="no round is finished"):
        load_run(tmp_path)
    with pytest.raises(DataError, match="at least one run"):
        load_runs([])


def test_a_directory_given_twice_counts_once_but_a_copied_seed_is_refused(tmp_path: Path) -> None:
    first, copy = run_directory(tmp_path / "a"), run_directory(tmp_path / "b")

    assert len(load_runs([first, tmp_path / "." / "a"])) == 1
    with pytest.raises(DataError, match="needs another seed"):
        load_runs([first, copy])


def test_generated_sentences_come_with_their_round_and_broken_ones_with_their_place(
    tmp_path: Path,
) -> None:
    run = load_run(run_directory(tmp_path / "run", variant="sub", rounds=2))
    made = load_generated(run)

    assert len(made) == 40 and {number for number, _ in made} == {0, 1}
    assert made[0][1].lineage.parents == ("train:7", "train:9")
    with (run.path / "generated.jsonl").open("a") as file:
        file.write('{"id": "x", "tokens": ["a"]}\n')
    with pytest.raises(DataError, match=r"generated\.jsonl:41: .*lineage"):
        load_generated(run)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\n"])
def test_no_cell_of_a_strangers_run_is_a_formula(start: str, tmp_path: Path) -> None:
    path = run_directory(tmp_path / "run", arm=f'{start}HYPERLINK("x")\r=1', rounds=1)
    lines = [json.loads(line) for line in (path / "rounds.jsonl").read_text().splitlines()]
    for split in ("dev", "test"):
        lines[0][split]["precision"] = f"{start}1"
    (path / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    rows = list(csv.reader(io.StringIO(as_csv(load_runs([path])), newline="")))

    assert rows[1][0] == f'\'{start}HYPERLINK("x") =1' and rows[1][9] == f"'{start}1"
    assert not [
        cell
        for row in rows
        for cell in row
        if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    ]


def test_the_table_has_a_line_for_each_round_and_split(tmp_path: Path) -> None:
    rows = list(
        csv.DictReader(io.StringIO(as_csv(load_runs([run_directory(tmp_path / "run", rounds=2)]))))
    )

    assert [(row["round"], row["split"]) for row in rows] == [
        ("0", "test"),
        ("0", "dev"),
        ("1", "test"),
        ("1", "dev"),
    ]
    assert 0.5 < float(rows[0]["f1"]) < 0.7
