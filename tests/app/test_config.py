"""Configs: presets, files and changes on top of each other; mistakes are said before loading."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.app.config import PRESETS, Config, load_config, parse_changes
from seqmix.errors import ConfigError
from seqmix.query.policies import POLICIES, combined

NAMES = sorted(path.stem for path in PRESETS.glob("*.toml"))


def test_the_papers_presets_and_the_demo_are_there() -> None:
    assert NAMES == ["ace05", "conll03", "demo", "few-labels", "genia", "webpage"]


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_parses_and_dry_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--preset", name, "--data", "nowhere", "--dry-run"]) == 0

    told = capsys.readouterr().out
    each = 4 if name == "few-labels" else 1  # three teachers and a student
    assert f"{each * (load_config(name).loop.rounds + 1)} training runs" in told


def test_the_presets_hold_the_papers_settings() -> None:
    conll, ace, web = (load_config(name) for name in ("conll03", "ace05", "webpage"))

    assert (conll.loop.seed_size, conll.loop.rounds, conll.query.size, conll.loop.slice) == (
        200,
        5,
        100,
        700,
    )
    assert (ace.loop.seed_size, ace.query.size, ace.augment.density) == (
        1000,
        [1000, 2000, 2000, 4000, 4000],
        0.2,
    )
    assert (web.loop.seed_size, web.query.size, web.augment.window, web.augment.density) == (
        85,
        [60, 60, 60, 60, 37],
        4,
        0.5,
    )
    assert all(
        (c.augment.alpha, c.augment.rate, c.augment.score_range, c.augment.variant)
        == (8, 0.2, "0,500", "sub")
        for c in (conll, ace, web)
    )


def test_the_papers_presets_go_on_with_the_last_tagger_and_keep_its_score_range() -> None:
    warm = {name: load_config(name).loop.warm for name in NAMES}

    assert warm == {
        "ace05": True,
        "conll03": True,
        "webpage": True,
        "few-labels": False,
        "demo": False,
        "genia": False,
    }
    assert (
        Config().augment.score_range == "0x,400x"
        and load_config("conll03").augment.score_range == "0,500"
    )


def test_the_base_is_the_variants_unless_it_is_given(tmp_path: Path) -> None:
    assert [
        load_config("conll03", changes={"augment.variant": name}).augment.base
        for name in ("sub", "label", "whole")
    ] == ["e", "e", "2"]
    assert (
        load_config(
            "conll03", changes={"augment.variant": "whole", "augment.base": "e"}
        ).augment.base
        == "e"
    )
    assert load_config("conll03", changes=parse_changes(["augment.base='2'"])).augment.base == "2"


def test_a_hash_outlives_a_new_default() -> None:
    old, new = (
        load_config("demo", changes={"augment.score_range": text}) for text in ("0,500", "0x,400x")
    )

    assert new.digest == load_config("demo").digest != old.digest
    assert load_config(changes={"augment.score_range": "0,500"}).digest == "7674a781fc38", (
        "as every config without changes had it"
    )


def test_changes_stand_on_files_stand_on_presets(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[augment]\nrate = 0.3\nalpha = 4\n")

    config = load_config(
        "conll03", file, {"augment.rate": 0.4, "query": {"policy": "mnlp"}}, seed=7
    )

    assert (
        config.augment.rate,
        config.augment.alpha,
        config.query.policy,
        config.seed,
        config.augment.window,
    ) == (0.4, 4, "mnlp", 7, 5)


def test_a_config_written_and_read_is_the_same(tmp_path: Path) -> None:
    config = load_config("ace05", changes=parse_changes(["training.lr=1e-4", "query.size=[1, 2]"]))
    (tmp_path / "c.toml").write_text(config.toml())

    assert load_config(None, tmp_path / "c.toml") == config
    assert config.digest != load_config("ace05").digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["augment.rat=0.4"], "augment.rat: there is no such key"),
        (["augment.rate"], "key=value"),
        (["query.policy=guess"], "query.policy"),
        (["augment.density=1.5"], "augment.density"),
        (["query.policy=lc"], "needs tagger.head crf"),
        (["loop.slice=10"], "at least loop.seed_size"),
        (["self_training.generations=2"], "needs self_training.teachers"),
        (["loop.rounds=-1"], "loop.rounds"),
        (["nonsense=1"], "nonsense: there is no such key"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    changes: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        load_config("conll03", changes=parse_changes(changes))
    arguments = [word for change in changes for word in ("--set", change)]
    assert run(["simulate", "--preset", "conll03", "--data", "x", "--out", "y", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_an_unknown_preset_and_a_broken_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are ace05, conll03, demo"):
        load_config("conll04")
    (tmp_path / "c.toml").write_text("x = [")
    with pytest.raises(ConfigError, match="cannot read the config"):
        load_config(None, tmp_path / "c.toml")


def test_every_policy_of_the_config_can_be_built_and_no_other() -> None:
    for name in POLICIES:
        head = {"tagger.head": "crf"} if "crf" in POLICIES[name].needs else {}
        config = load_config(changes={"query.policy": name, **head})
        assert config.query.policy == name
        assert combined(name, True, 0.1, 500).needs == POLICIES[name].needs
    with pytest.raises(ConfigError, match="there is no policy"):
        combined("guess")


def test_arms_are_named_by_policy_and_augmentation() -> None:
    assert Config().arm == "nte+sub"
    assert load_config("demo", changes={"augment.variant": "none"}).arm == "nte"


def test_changes_are_mappings_and_set_strings_become_one_with_the_last_first() -> None:
    """A later change counts even where an earlier one had its whole section between them."""
    changes = parse_changes(["augment.rate=1", "augment={rate=2}", "augment.rate=3"])

    assert list(changes.items()) == [("augment", {"rate": 2}), ("augment.rate", 3)]
    assert load_config(changes=changes).augment.rate == 3
    assert load_config(changes={"augment": {"rate": 3}}) == load_config(changes=changes)


def test_the_hash_knows_the_combined_variant_by_its_first_name() -> None:
    """Results in the repository were measured when it was called best."""
    changes = {"augment.variant": "mention+sub", "loop.warm": False}

    assert load_config("conll03", changes=changes).digest == "62304deb7f2f"


def test_asking_for_a_part_needs_a_policy_that_scores_tokens_and_names_the_arm() -> None:
    config = load_config(changes={"query.part": 5, "augment.variant": "none"})

    assert config.arm == "nte part=5" and config.digest != Config().digest
    assert load_config(changes={"query.part": 0}).digest == Config().digest
    for policy in ("qbc", "badge", "fluctuation"):
        message = f"query.part: asking .* needs a policy that scores each .* nte.*; got {policy}$"
        with pytest.raises(ConfigError, match=message):
            load_config(changes={"query.part": 5, "query.policy": policy})
