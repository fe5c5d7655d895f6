"""The demo follows the preset, says how far it is, and claims what was measured and no more."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

import demo
from seqmix.app.config import load_config
from seqmix.app.sweep.lengths import learned, shortened
from seqmix.app.sweep.spec import jobs, read_sweep
from seqmix.app.sweep.table import COLUMNS
from seqmix.app.sweep.worker import StepProgress
from seqmix.errors import ConfigError
from seqmix.scale.local_executor import JobEvent
from tests.support import tiny

MOST = 220


@pytest.fixture
def experiment():
    return read_sweep(demo.FILE)


def table_of(path: Path, experiment, scores: dict[str, list[float]], digest: str = "") -> Path:
    """A sweep's table with these last F1 scores, seed by seed."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        for arm in experiment.arms:
            for seed, f1 in enumerate(scores[arm.name]):
                for number, value in enumerate((0.1, f1 / 100)):
                    writer.writerow(
                        {
                            "experiment": "demo", "arm": arm.name, "seed": seed, "round": number,
                            "config": digest or arm.digest, "test_f1": value,
                        }
                    )  # fmt: skip
    return path


def test_the_recipe_of_the_demo_is_the_preset_with_shorter_trainings(experiment) -> None:
    (recipe,) = (arm.config for arm in experiment.arms if arm.name == demo.RECIPE)
    preset = load_config("few-labels")
    taught = recipe.self_training

    assert recipe.tagger == preset.tagger
    assert recipe.augment == preset.augment
    assert (taught.teachers, taught.generations) == (
        preset.self_training.teachers,
        preset.self_training.generations,
    )
    assert taught.sentences == preset.self_training.sentences
    assert recipe.adapt.lr == preset.adapt.lr
    assert 0 < recipe.adapt.epochs <= preset.adapt.epochs
    steps = taught.teachers * recipe.training.steps_for(1)
    steps += (1 + taught.teachers * (taught.generations - 1)) * taught.steps
    assert 0.9 * MOST <= steps <= 1.1 * MOST


def test_all_three_end_with_as_many_labeled_sentences(experiment) -> None:
    rate = {arm.name: arm.config.augment.rate for arm in experiment.arms}
    ends = {
        arm.name: learned(arm.config, arm.config.loop.rounds) / (1 + rate[arm.name])
        for arm in experiment.arms
    }
    assert set(ends) == {demo.PLAIN, demo.SEQMIX, demo.RECIPE}
    assert len({round(end) for end in ends.values()}) == 1


def test_shorter_trainings_keep_their_proportions() -> None:
    config = load_config("few-labels", changes={"training.min_steps": 600, "loop.rounds": 0})
    teachers = config.self_training.teachers
    total = teachers * 600 + config.self_training.steps
    half = shortened(config, total // 2)

    assert half.training.steps == 300
    assert half.self_training.steps == pytest.approx(config.self_training.steps / 2, abs=1)
    assert half.adapt.epochs == config.adapt.epochs / 2
    assert shortened(config, 10**9).training.steps == 600
    averaged = {"self_training.teachers": 0, "training.members": 3, "training.min_steps": 600}
    three = load_config("few-labels", changes={**averaged, "loop.rounds": 0})
    assert shortened(three, 900).training.steps == 300


@pytest.mark.parametrize("steps", [0, -1, "200", 1.5, True])
def test_nonsense_for_most_steps_is_refused(steps, tmp_path) -> None:
    value = f'"{steps}"' if isinstance(steps, str) else str(steps).lower()
    path = tmp_path / "mine.toml"
    path.write_text(f'title = "T"\ndata = "gazette"\n[arms.a]\nmost_steps = {value}\n')

    with pytest.raises(ConfigError, match="most_steps must be a whole number"):
        read_sweep(path)


def test_progress_reaches_the_end_and_names_what_is_done(experiment) -> None:
    arms = jobs(experiment, experiment.arms, [0])
    work = demo.Work(arms)
    seen = []
    for job in arms:
        stages = len(demo.parts(job.config))
        for number in range(1, stages + 1):
            for done in (1, 10):
                work.on_event(
                    JobEvent("emitted", job, StepProgress(number, f"stage {number}", done, 10))
                )
                seen.append(work.share)
            assert f"{job.arm.name}: stage {number}" in work.doing[job.arm.name]
        work.on_event(JobEvent("done", job))

    assert seen == sorted(seen)
    assert work.share == pytest.approx(1)
    assert not work.doing
    assert work.seconds_left == pytest.approx(0)


def test_it_knows_the_trainings_of_each_arm(experiment) -> None:
    by_name = {arm.name: demo.parts(arm.config) for arm in experiment.arms}

    assert by_name[demo.PLAIN] == by_name[demo.SEQMIX] == [30, 50, 60]
    teachers = load_config("few-labels").self_training.teachers
    assert len(by_name[demo.RECIPE]) == 1 + teachers + 1


def test_the_last_sentence_says_what_was_measured(experiment, tmp_path) -> None:
    scores = {
        demo.PLAIN: [60.0, 62.0, 64.0],
        demo.SEQMIX: [60.0, 61.0, 64.0],
        demo.RECIPE: [66.0, 61.5, 69.0],
    }
    measured = demo.measured(experiment, table_of(tmp_path / "demo.csv", experiment, scores))
    said = demo.verdict(measured)

    assert "seeds: 1" in said and "varies by 2.0 points" in said
    assert "over 3 seeds few-labels ends 3.5 points" in said and "in 2 of 3" in said
    assert "SeqMix differs from it by −0.3 points" in said
    assert len(re.findall(r"\.(\s|$)", said)) == 1


def test_figures_of_other_settings_are_not_claimed(experiment, tmp_path) -> None:
    scores = {arm.name: [60.0, 62.0] for arm in experiment.arms}
    old = table_of(tmp_path / "demo.csv", experiment, scores, digest="0123456789ab")

    assert demo.measured(experiment, old) == {}
    assert demo.measured(experiment, tmp_path / "none.csv") == {}
    assert "has not been measured with these settings" in demo.verdict({})


@pytest.mark.ci
def test_the_demo_ends_with_curves_a_table_a_sentence_and_a_page(
    tmp_path, monkeypatch, capfd
) -> None:
    """With tiny encoders."""
    encoder = tiny.write_masked_lm(tmp_path / "bert")
    text = demo.FILE.read_text(encoding="utf-8")
    small = f'[set]\n"tagger.encoder" = "{encoder}"\n"training.steps" = 3\n[arms."few-labels"]'
    path = tmp_path / "demo.toml"
    path.write_text(text.replace('[arms."few-labels"]', small).replace("= 220", "= 12"))
    monkeypatch.setattr(demo, "FILE", path)
    monkeypatch.chdir(tmp_path)

    demo.main([])

    said = capfd.readouterr()
    assert "100%" in said.err or "teacher" in said.err
    page = tmp_path / "runs" / "demo" / "report.html"
    text = page.read_text(encoding="utf-8")
    for name in (demo.PLAIN, demo.SEQMIX, demo.RECIPE):
        assert re.search(rf"^{name} +160 +\d", said.out, re.M)
        assert name in text
    assert "report: runs/demo/report.html" in said.out
    demo.main([])  # nothing is trained again
    assert "training on" not in capfd.readouterr().err
