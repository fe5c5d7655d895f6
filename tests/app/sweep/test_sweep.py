"""Sweeps: files into arms and runs, runs side by side into one table, and nothing is lost."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.app.config import load_config
from seqmix.app.sweep import worker as sweep_worker
from seqmix.app.sweep.spec import jobs, parse_seeds, read_sweep
from seqmix.app.sweep.table import COLUMNS, read_results, write_results
from seqmix.data import formats
from seqmix.data.files import locked
from seqmix.errors import ConfigError, DataError
from tests.support import tiny

# Its recipe is the preset of the day; scripts/demo.py says when that has changed.
FOLLOWS = "demo"
EXPERIMENTS = sorted((Path(__file__).parents[3] / "experiments").glob("*.toml"))
REMOVED = {  # arms whose settings are gone: experiments/README.md
    "levers": {
        "label smoothing",
        "mention fresh in every epoch",
        "sub fresh in every second epoch",
        "sub by chance instead of a cut",
        "adapted + self-training + best + label smoothing",
        "adapted + self-training + best + partners from the pool",
    }
}
START = 'title = "T"\ndata = "gazette"\npreset = "demo"\nseeds = 2\n'


def written(folder: Path, text: str, start: str = START) -> Path:
    path = folder / "mine.toml"
    path.write_text(start + text)
    return path


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_experiment_resolves_without_its_data(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", str(path), "--dry-run"]) == 0

    told = capsys.readouterr().out
    experiment = read_sweep(path)
    assert all(arm.name in told and arm.digest in told for arm in experiment.arms)
    assert f"{len(experiment.arms) * len(experiment.seeds)} runs" in told
    assert len(experiment.seeds) >= (
        10 if path.stem.endswith("-main") else 2 if path.stem == "smoke" else 5
    )


@pytest.mark.parametrize(
    "path", [path for path in EXPERIMENTS if path.stem != FOLLOWS], ids=lambda path: path.stem
)
def test_every_experiment_still_has_the_configs_its_results_were_made_with(path: Path) -> None:
    table = path.parents[1] / "results" / f"{path.stem}.csv"
    lines = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    measured = {(row["arm"], row["config"]) for row in csv.DictReader(lines)}
    now = {(arm.name, arm.digest) for arm in read_sweep(path).arms}

    removed = {arm for arm, _ in measured} - {arm for arm, _ in now}
    assert removed <= REMOVED.get(path.stem, set())
    assert {(arm, config) for arm, config in measured if arm not in removed} <= now, (
        "what a preset or a default changed has to be set in the file as it was"
    )


def test_the_experiments_are_those_of_the_results_page() -> None:
    main = ["conll03-main", "genia-main", "webpage-main"]
    settings = [
        "alpha",
        "epochs",
        "larger-encoder",
        "larger-lm",
        "rate",
        "score-range",
        "smoke",
        "table",
        "window",
    ]
    policies = [f"policies-{what}" for what in ("genia", "pool", "slice", "webpage")]
    assert sorted(path.stem for path in EXPERIMENTS) == sorted(
        [*main, *settings, *policies, "best", "best-curves", "demo", "devices", "levers"]
    )
    folder = EXPERIMENTS[0].parent
    for name, sentences in zip(main, (700, 8499, 362), strict=True):
        arms = {arm.name: arm.config for arm in read_sweep(folder / f"{name}.toml").arms}
        assert list(arms) == [
            "none", "none at 10 epochs", "duplicate", "whole", "sub", "label", "mention", "token",
            "shuffle", "best", "mixup",
        ]  # fmt: skip
        assert [arm for arm, config in arms.items() if not config.loop.match_steps] == [
            "none at 10 epochs"
        ]
        size, rounds = arms["sub"].query.size, arms["sub"].loop.rounds
        asked = sum(size) if isinstance(size, list) else size * rounds
        assert arms["sub"].loop.seed_size + asked <= sentences


def test_arms_times_grid_times_seeds_come_seed_by_seed(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[set]\n"augment.rate" = 0.4\n'
        '[arms."none"]\ngrid = false\naugment.variant = "none"\n'
        '[arms."sub"]\npreset = "conll03"\n'
        '[grid]\n"augment.alpha" = [0.5, 2]\n"augment.score_range" = ["0,500"]\n',
    )

    experiment = read_sweep(path)

    names = ["none", "sub alpha=0.5 score_range=0-500", "sub alpha=2 score_range=0-500"]
    assert [arm.name for arm in experiment.arms] == names
    assert [
        (job.seed, job.arm.name) for job in jobs(experiment, experiment.arms, experiment.seeds)
    ] == [(s, n) for s in (0, 1) for n in names]
    first, last = experiment.arms[0], experiment.arms[-1]
    assert (first.config.augment.variant, first.config.augment.rate, first.config.loop.slice) == (
        "none",
        0.4,
        None,
    )
    assert (last.config.augment.alpha, last.config.loop.slice, last.preset) == (2, 700, "conll03")
    assert jobs(experiment, [last], [7])[0].config.seed == 7
    assert (
        last.digest
        == load_config(
            "conll03",
            changes={"augment.rate": 0.4, "augment.alpha": 2, "augment.score_range": "0,500"},
        ).digest
    )
    assert (
        experiment.chosen("sub") == experiment.arms[1:]
        and experiment.chosen(f"none,{names[1]}") == experiment.arms[:2]
    )


def test_arms_that_are_the_same_share_their_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(
        tmp_path, '[arms.a]\n[arms.b]\n"augment.alpha" = 8.0\n[arms.c]\ndata = "gazette-triggers"\n'
    )
    experiment = read_sweep(path)

    assert [job.arm.name for job in jobs(experiment, experiment.arms, [0])] == ["a", "c"]
    assert run(["sweep", str(path), "--dry-run", "--seeds", "3"]) == 0
    assert (
        "shares the runs of a" in (told := capsys.readouterr().out)
        and "3 arms, 3 seeds: 6 runs, 24 trainings" in told
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour = 1\n[arms.a]\n", "colour: there is no such key; there are title, data"),
        ("", "arms"),
        ("[arms]\n", "arms"),
        ('[arms.a]\n"augment.rat" = 1\n', "arm 'a': augment.rat: there is no such key"),
        ("[arms.a]\nseed = 1\n", "a sweep gives its seeds at the top"),
        ('[arms.a]\npreset = "conll04"\n', "there is no preset 'conll04'"),
        ("[arms.a]\n[grid]\n'augment.alpha' = []\n", "grid.augment.alpha"),
        ('[arms."a,b"]\n', "no comma"),
        ('[arms."a b"]\n[arms."a?b"]\n"augment.alpha" = 1\n', "or nearly so"),
        ("[arms.a]\n[grid]\n'augment.alpha' = [1, 1]\n", "two arms are called 'a alpha=1'"),
        ("[arms.a", "cannot read the sweep"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(
            [
                "sweep",
                str(written(tmp_path, text)),
                "--out",
                str(tmp_path / "out"),
                "--limit-minutes",
                "0",
            ]
        )
        == 2
    )

    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and told[0].startswith("error: ") and message in told[0]
    assert not (tmp_path / "out").exists()


def test_what_a_command_lacks_is_said_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(text: str, *more: str) -> str:
        assert (
            run(["sweep", str(written(tmp_path, text, START.replace("gazette", "news"))), *more])
            == 2
        )
        return capsys.readouterr().err

    out = ("--out", str(tmp_path / "out"))
    model = '[arms.a]\n"tagger.encoder" = "models/big"\n'
    (tmp_path / "news").mkdir()
    assert "say where the sweep should go" in refused("[arms.a]\n")
    assert "say where the data is: --data ROOT" in refused("[arms.a]\n", *out)
    assert f"there is no folder {tmp_path / 'no' / 'news'}" in refused(
        "[arms.a]\n", *out, "--data", str(tmp_path / "no")
    )
    assert "say where the models are: --models ROOT" in refused(
        model, *out, "--data", str(tmp_path)
    )
    assert "there is no folder" in refused(
        model, *out, "--data", str(tmp_path), "--models", str(tmp_path)
    )
    assert "there is no arm 'x' in mine; there are a" in refused("[arms.a]\n", *out, "--arms", "x")
    assert "--seeds must look like 10" in refused("[arms.a]\n", *out, "--seeds", "0")
    assert not (tmp_path / "out").exists()


def test_seeds_are_a_number_a_range_or_a_list() -> None:
    assert [parse_seeds(text) for text in ("3", "5-6", "4,2", "7,")] == [
        (0, 1, 2),
        (5, 6),
        (4, 2),
        (7,),
    ]
    for text in ("", "0", "6-5", "a", "1.5"):
        with pytest.raises(ConfigError, match="must look like"):
            parse_seeds(text)


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder `toy` and an encoder `bert` in one root, and a sweep over them."""
    root = tmp_path_factory.mktemp("toys")
    tiny.write_bert(root / "bert")
    (root / "toy").mkdir()
    sentences = list({sentence.tokens: sentence for sentence in tiny.toy(60)}.values())
    for name, part in (
        ("train", sentences[:-8]),
        ("dev", sentences[-8:-4]),
        ("test", sentences[-4:]),
    ):
        formats.write(part, root / "toy" / f"{name}.conll")
    (root / "toys.toml").write_text(
        'title = "Toys"\ndata = "toy"\nseeds = 2\n'
        '[set]\n"tagger.encoder" = "models/bert"\n"loop.seed_size" = 6\n"loop.rounds" = 1\n'
        '"query.size" = 3\n"training.epochs" = 2\n"augment.score_range" = "off"\n'
        '"augment.window" = 2\n"augment.density" = 0.5\n"augment.rate" = 0.5\n'
        '[arms."none"]\n"augment.variant" = "none"\n[arms."sub"]\n'
        '[arms."the same"]\n"augment.variant" = "none"\n'
        '[arms."too much"]\n"loop.seed_size" = 1000\n'
    )
    return root


def sweep(root: Path, out: Path, *more: str) -> int:
    return run(
        [
            "sweep",
            str(root / "toys.toml"),
            "--data",
            str(root),
            "--models",
            str(root),
            "--out",
            str(out),
            *more,
        ]
    )


def test_a_sweep_is_as_many_simulated_runs_and_goes_on_where_it_was(
    toys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert sweep(toys, out, "--limit-minutes", "0") == 0, "no time, no run"
    assert "6 runs left" in capsys.readouterr().err
    assert sweep(toys, out, "--arms", "none", "--seeds", "1") == 0
    broken = out / "runs" / "sub" / "seed-0"
    shutil.copytree(out / "runs" / "none" / "seed-0", broken)
    (broken / "rounds.jsonl").write_text(
        (broken / "rounds.jsonl").read_text().splitlines()[0] + "\n"
    )
    capsys.readouterr()

    assert sweep(toys, out, "--workers", "2") == 1

    told = capsys.readouterr().err
    assert (
        "6 runs, 1 of them there already; 2 at a time" in told
        and "2 runs failed" in told
        and "the same command" in told
    )
    failed = list(csv.DictReader((out / "failed.csv").read_text().splitlines()))
    assert [(row["arm"], row["seed"]) for row in failed] == [("too much", "0"), ("too much", "1")]
    assert (
        "need 1003 different sentences" in failed[0]["error"]
        and failed[0]["error"] in (out / "sweep.log").read_text()
    )
    rows = read_results([out / "results.csv"])
    runs = [(arm, seed) for arm in ("none", "sub", "the same") for seed in (0, 1)]
    assert [(row["arm"], row["seed"], row["round"], row["labeled"]) for row in rows] == [
        (*key, r, 6 + 3 * r) for key in runs for r in (0, 1)
    ]
    assert not (out / "runs" / "the-same").exists() and not list(out.rglob("model"))
    assert {row["steps"] for row in rows if row["round"] == 1} == {2}, "arms take equal steps"
    assert [row["generated"] > 0 for row in rows if row["round"] == 1] == [False] * 2 + [
        True
    ] * 2 + [False] * 2
    assert {(row["experiment"], row["data"], row["device"], row["encoder"]) for row in rows} == {
        ("toys", "toy", "cpu", "models/bert")
    }
    assert all(
        row["config"] == read_sweep(toys / "toys.toml").arms[0].digest
        for row in rows
        if row["arm"] != "sub"
    )
    _same_as_simulated(toys, tmp_path, rows)


def _same_as_simulated(toys: Path, tmp_path: Path, rows: list[dict[str, object]]) -> None:
    (tmp_path / "c.toml").write_text(read_sweep(toys / "toys.toml").arms[1].config.toml())
    encoder = f"tagger.encoder={json.dumps(str(toys / 'bert'))}"
    command = [
        "simulate",
        "--data",
        str(toys / "toy"),
        "--config",
        str(tmp_path / "c.toml"),
        "--set",
        encoder,
        "--seed",
        "1",
    ]
    assert run([*command, "--out", str(tmp_path / "run")]) == 0
    alone = [
        json.loads(line) for line in (tmp_path / "run" / "rounds.jsonl").read_text().splitlines()
    ]
    swept = [row for row in rows if (row["arm"], row["seed"]) == ("sub", 1)]
    assert [row["dev_f1"] for row in swept] == [
        pytest.approx(line["dev"]["f1"], abs=1e-6) for line in alone
    ]
    assert [row["generated"] for row in swept] == [line["generated"] for line in alone]


def test_results_alone_are_enough_to_go_on_and_another_config_is_refused(
    toys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, arms = tmp_path / "out", ("--arms", "none,the same", "--seeds", "1")
    assert sweep(toys, out, *arms) == 0
    with locked(out):
        assert sweep(toys, out, *arms) == 2
    assert "another process is working" in capsys.readouterr().err
    before = (out / "results.csv").read_bytes()
    shutil.rmtree(out / "runs")

    assert sweep(toys, out, *arms, "--dry-run") == 0
    assert "1 runs, 2 trainings; 1 runs finished" in capsys.readouterr().out
    assert sweep(toys, out, *arms) == 0
    assert (out / "results.csv").read_bytes() == before and not (out / "runs").exists()
    assert sweep(toys, tmp_path / "other", *arms, "--reuse", str(out / "results.csv")) == 0
    assert (tmp_path / "other" / "results.csv").read_bytes() == before and not (
        tmp_path / "other" / "runs"
    ).exists()

    root = tmp_path / "changed"
    shutil.copytree(toys, root)
    (root / "toys.toml").write_text(
        (toys / "toys.toml").read_text().replace('"query.size" = 3', '"query.size" = 4')
    )
    assert sweep(root, out, *arms) == 2
    assert "give another --out" in capsys.readouterr().err


def test_a_sweep_goes_on_only_with_the_data_and_models_its_rows_were_made_with(
    toys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, arms, other = tmp_path / "out", ("--arms", "none", "--seeds", "1"), tmp_path / "other"
    assert sweep(toys, out, *arms) == 0
    rows = read_results([out / "results.csv"])
    assert all(row["data_digest"] and row["models_digest"] for row in rows)
    shutil.copytree(toys, other)
    (other / "toy" / "test.conll").write_text(
        (toys / "toy" / "test.conll").read_text().replace("B-PER", "B-LOC")
    )
    capsys.readouterr()

    assert sweep(other, out, "--arms", "none", "--seeds", "2") == 2
    assert (
        f"{out / 'results.csv'} has none, seed 0 on other data called toy"
        in capsys.readouterr().err
    )
    assert sweep(other, out, "--arms", "sub", "--seeds", "1") == 2, (
        "nor beside an arm that is not run now"
    )
    (out / "results.csv").rename(tmp_path / "kept.csv")
    assert sweep(other, out, *arms) == 2, "a finished run says it as its rows do"
    assert sweep(other, tmp_path / "new", *arms, "--reuse", str(tmp_path / "kept.csv")) == 2
    assert (
        f"{tmp_path / 'kept.csv'} has none, seed 0 on other data called toy"
        in capsys.readouterr().err
    )
    shutil.copytree(toys / "toy", other / "toy", dirs_exist_ok=True)
    (other / "bert" / "config.json").write_text((toys / "bert" / "config.json").read_text() + "\n")
    assert sweep(other, tmp_path / "new", *arms, "--reuse", str(tmp_path / "kept.csv")) == 2
    assert "on other models under the names in the config" in capsys.readouterr().err
    assert sweep(toys, tmp_path / "new", *arms, "--reuse", str(tmp_path / "kept.csv")) == 0
    assert read_results([tmp_path / "new" / "results.csv"]) == rows
    assert "unknown" not in capsys.readouterr().err

    assert all(row["pieces"] > 0 for row in rows)
    # a table from before digests were kept and pieces counted
    without = [name for name in COLUMNS if not name.endswith("_digest") and name != "pieces"]
    with (tmp_path / "old.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, without, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    assert sweep(toys, tmp_path / "newer", *arms, "--reuse", str(tmp_path / "old.csv")) == 0
    assert (
        "1 finished runs have no digest of what they read: "
        "whether that was the same data and models is unknown" in capsys.readouterr().err
    )
    newer = read_results([tmp_path / "newer" / "results.csv"])
    assert {(row["data_digest"], row["pieces"]) for row in newer} == {(None, None)}


def test_a_polite_kill_ends_a_sweep_like_ctrl_c(toys: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "seqmix",
        "sweep",
        str(toys / "toys.toml"),
        "--data",
        str(toys),
        "--models",
        str(toys),
    ]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    time.sleep(0.5)

    process.terminate()

    _, said = process.communicate(timeout=120)
    assert (
        "Toys: 6 runs" in first
        and "interrupted with 0 of 6 runs finished; the same command resumes" in said
    )
    assert (
        process.returncode == 130
        and (tmp_path / "results.csv").exists()
        and "Traceback" not in said
    )


def test_a_run_is_cleared_away_whole_before_it_starts_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "seed-0"
    folder.mkdir()
    (folder / "config.toml").write_text("seed = 0")
    monkeypatch.setattr(
        shutil, "rmtree", lambda *given, **more: None
    )  # killed before anything of it was removed

    sweep_worker.clear_run(folder)

    assert not folder.exists(), "half removed it would be no run of ours, and refused for ever"


def test_a_damaged_list_of_failures_is_named(
    toys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "failed.csv").write_text("arm,seed,error\nnone,x,y\n")

    assert sweep(toys, tmp_path) == 2
    assert "failed.csv is damaged" in capsys.readouterr().err


def test_tables_of_results_merge_without_repetition_and_the_newest_wins(tmp_path: Path) -> None:
    def row(arm: str, round: int, finished: str, f1: float) -> dict[str, object]:
        known = {
            "experiment": "e",
            "arm": arm,
            "seed": 0,
            "round": round,
            "finished": finished,
            "test_f1": f1,
            "accepted": None,
        }
        return {
            name: known.get(name, 1 if name in ("labeled", "tokens", "spans") else None)
            for name in COLUMNS
        }

    old = [
        row("b", 0, "2020-01-02", 0.1),
        row("b", 1, "2020-01-02", 0.2),
        row("a", 0, "2020-01-02", 0.3),
    ]
    write_results(tmp_path / "1.csv", old)
    write_results(
        tmp_path / "2.csv", [row("a", 0, "2020-01-01", 0.9), row("b", 0, "2020-01-03", 0.5)]
    )

    merged = read_results([tmp_path / "1.csv", tmp_path / "2.csv"])

    assert [(one["arm"], one["round"], one["test_f1"]) for one in merged] == [
        ("b", 0, 0.5),
        ("a", 0, 0.3),
    ], "runs are replaced whole"
    assert read_results([tmp_path / "1.csv"]) == old
    (tmp_path / "3.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"3\.csv:2: expected the results of a sweep"):
        read_results([tmp_path / "3.csv"])
    with pytest.raises(DataError, match="cannot read"):
        read_results([tmp_path / "4.csv"])


@pytest.mark.ci  # four runs that train the starter
def test_the_smoke_sweep_runs_whole(tmp_path: Path) -> None:
    smoke = next(path for path in EXPERIMENTS if path.stem == "smoke")

    assert (
        run(["sweep", str(smoke), "--out", str(tmp_path), "--workers", "2", "--device", "cpu"]) == 0
    )

    rows = read_results([tmp_path / "results.csv"])
    assert [(row["arm"], row["seed"], row["labeled"]) for row in rows] == [
        (a, s, n) for a in ("none", "sub") for s in (0, 1) for n in (24, 36)
    ]
    assert len({(row["steps"], row["round"]) for row in rows}) == 2 and all(
        row["generated"] > 0 for row in rows if row["arm"] == "sub"
    )
