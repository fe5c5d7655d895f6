"""From a config to a plan: the parts of the recipe beside policy and augmentation."""

from __future__ import annotations

import json

import pytest

import tiny
from seqmix.app.config import load_config
from seqmix.app.plan import build_plan, read_splits
from seqmix.errors import ConfigError
from seqmix.loop.run import run
from seqmix.starter import load_encoder

SMALL = ["loop.seed_size=20", "loop.rounds=1", "query.size=5", "loop.slice=30", "training.epochs=1", "augment.variant=none"]


@pytest.fixture(scope="module")
def masked(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("masked")
    model, tokenizer = load_encoder(tiny.write_bert(folder / "bare"), masked_lm=True)
    model.save_pretrained(folder / "bert")
    tokenizer.save_pretrained(folder / "bert")
    return str(folder / "bert")


def plan(changes, place=None):
    config = load_config("demo", None, [*SMALL, "tagger.device=cpu", *changes])
    splits = {name: own[:30] if name != "train" else own for name, own in read_splits("gazette", config).items()}
    return build_plan(config, splits, place)


def test_the_encoder_is_adapted_once_for_all_runs_with_the_same_text(tmp_path, masked):
    changes = [f"tagger.encoder={masked}", "adapt.epochs=1"]
    run(plan(changes, tmp_path / "encoders"), tmp_path / "one")
    (made,) = [folder for folder in (tmp_path / "encoders").iterdir() if folder.suffix != ".lock"]
    written = (made / "model.safetensors").stat().st_mtime_ns

    run(plan([*changes, "seed=1"], tmp_path / "encoders"), tmp_path / "two")

    assert (made / "model.safetensors").stat().st_mtime_ns == written
    assert (made / "adapt.json").exists()


def test_adapting_needs_a_place(masked):
    with pytest.raises(ConfigError, match="needs a folder"):
        plan([f"tagger.encoder={masked}", "adapt.epochs=1"])


def test_a_student_is_trained_on_the_pool_and_the_run_repeats(tmp_path, masked):
    changes = [f"tagger.encoder={masked}", "self_training.teachers=2", "self_training.sentences=40", "self_training.steps=4"]

    both = [run(plan(changes), tmp_path / name) for name in ("one", "two")]

    assert both[0] == both[1]
    plain = run(plan(changes[:1]), tmp_path / "plain")
    assert plain[0]["test"] != both[0][0]["test"], "the student is another tagger"


def test_steps_have_a_floor(masked):
    recipe = plan([f"tagger.encoder={masked}", "training.min_steps=50"]).recipe

    assert recipe.steps(32) == 50
    assert recipe.steps(32 * 60) == 60


@pytest.mark.parametrize("table", ["encoder", "trained", "contextual"])
def test_every_table_knows_the_words_of_later_rounds(table, tmp_path, masked):
    changes = [f"tagger.encoder={masked}", "augment.variant=sub", "augment.score_range=off", f"augment.table={table}"]

    rounds = run(plan(changes), tmp_path / "run")

    assert [entry["generated"] > 0 for entry in rounds] == [True, True]


def test_a_proxy_chooses_and_the_larger_encoder_learns(tmp_path, masked):
    other = tiny.write_roberta(tmp_path / "other")
    alone = run(plan([f"tagger.encoder={masked}"]), tmp_path / "alone")
    helped = run(plan([f"tagger.encoder={masked}", f"query.proxy={other}"]), tmp_path / "helped")

    asked = [json.loads(next((tmp_path / name).rglob("chosen.json")).read_text())["ids"] for name in ("alone", "helped")]
    assert alone[0]["test"] == helped[0]["test"], "what learns from the seed set is the same"
    assert asked[0] != asked[1], "who chose is not"
