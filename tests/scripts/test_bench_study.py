"""The rule that experiments/study/shipped-or-slower.toml declares chooses the recipe."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from bench.study import CORPORA, SHIPPED, chosen

from seqmix.app.sweep.spec import read_sweep

STUDY = Path(__file__).parents[2] / "experiments" / "study"


def rows(**f1: tuple[float, float, float]) -> list[dict[str, object]]:
    return [
        {"arm": f"{arm} data={data}", "data": data, "dev_f1": value}
        for arm, values in f1.items()
        for data, value in zip(("conll03", "wnut17", "genia2011"), values, strict=True)
    ]


@pytest.mark.parametrize(
    ("slow", "slower", "expected"),
    [
        ((0.804, 0.404, 0.404), (0.804, 0.404, 0.404), SHIPPED),  # a mean gain of 0.4
        ((0.806, 0.406, 0.406), (0.80, 0.40, 0.40), "slow"),
        ((0.806, 0.406, 0.406), (0.82, 0.42, 0.42), "slower"),
        ((0.806, 0.406, 0.406), (0.90, 0.50, 0.394), "slow"),  # the other loses 0.6 on a corpus
    ],
)
def test_a_rate_is_chosen_that_gains_half_a_point_and_loses_it_nowhere(
    slow: tuple[float, float, float], slower: tuple[float, float, float], expected: str
) -> None:
    measured = {SHIPPED: (0.80, 0.40, 0.40), "slow": slow, "slower": slower}

    assert chosen(rows(**measured)) == expected


def test_each_arm_that_may_be_chosen_is_declared_on_test() -> None:
    chosen_from, on_test = (
        tomllib.loads((STUDY / f"{name}.toml").read_text())
        for name in ("shipped-or-slower", "few-labels-test")
    )

    for arm in chosen_from["arms"]:
        assert {arm, f"{arm} at 50"} <= on_test["arms"].keys()
    assert on_test["grid"]["data"] == list(CORPORA)


@pytest.mark.parametrize("path", sorted(STUDY.glob("*.toml")), ids=lambda path: path.stem)
def test_a_declared_sweep_can_run(path: Path) -> None:
    assert read_sweep(path).arms


def test_averaged_taggers_are_trained_as_the_single_ones_are() -> None:
    averaged, plain = (read_sweep(STUDY / f"{name}.toml") for name in ("averaged", "plain-test"))
    single = {arm.data: arm.config for arm in plain.arms}

    assert averaged.seeds == plain.seeds and {a.data for a in averaged.arms} == set(single)
    for arm in averaged.arms:
        assert arm.config.training.members == 3
        changed = replace(arm.config.training, members=1)
        assert arm.config.model_copy(update={"training": changed}) == single[arm.data]


def test_parts_and_whole_sentences_are_compared_at_equal_tokens_and_steps() -> None:
    study = read_sweep(STUDY / "policies-part.toml")
    elsewhere = {
        seed
        for path in STUDY.parent.rglob("*.toml")
        if path.stem != study.name
        for seed in read_sweep(path).seeds
    }

    assert study.seeds == tuple(range(400, 410)) and not elsewhere & set(study.seeds)
    asked = {(a.data, a.config.query.policy, a.config.query.part) for a in study.arms}
    assert asked == set(product(("conll03", "genia2011"), ("random", "nte"), (0, 5, 10)))
    assert {arm.config.query.tokens for arm in study.arms} == {1000}
    assert {arm.config.training.steps_for(n) for arm in study.arms for n in (200, 2200)} == {1000}


def test_the_study_of_mixing_is_the_one_that_its_file_declares() -> None:
    study = read_sweep(STUDY / "mixing-declared.toml")
    tuned = {arm.data: arm.config.training for arm in read_sweep(STUDY / "plain-test.toml").arms}
    elsewhere = {
        seed
        for path in STUDY.parent.rglob("*.toml")
        if path.stem != study.name
        for seed in read_sweep(path).seeds
    }

    assert len(study.seeds) == 40 and not elsewhere & set(study.seeds)
    assert {arm.name for arm in study.arms} == {
        f"{how}{mention}{mix} data={data}"
        for how in ("plain", "recipe")
        for mention in ("", " + mention")
        for mix in ("", " + mix")
        for data in CORPORA
    }
    for arm in study.arms:
        config, name = arm.config, arm.name
        assert arm.data == name.rpartition("=")[2]
        mixes = "sub" in config.augment.variant or config.mixed.variant != "none"
        assert (mixes, "mention" in config.augment.variant) == (
            "+ mix" in name,
            "+ mention" in name,
        )
        assert bool(config.self_training.teachers) == name.startswith("recipe")
        if name.startswith("plain"):
            assert config.training == tuned[arm.data]
