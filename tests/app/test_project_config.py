"""Keys that training.toml accepts are obeyed; others are refused before a model loads."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seqmix.app import plan, trainer_process
from seqmix.app.project_config import FILE, IN_PROJECT, REFUSED, project_config
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.trainer.parts import Parts
from seqmix.tagger import tagger as tagger_module
from tests.support.config_keys import Recorder, another, keys

SETTINGS = {"head": "linear", "augment": "sub", "rate": 0.2}


def build_parts(folder: Path, toml: str, **changes: Any) -> Parts:
    """Return the parts of the trainer of a project with this training.toml and these settings."""
    (folder / FILE).write_text(toml)
    settings = ProjectSettings("people", ("PER",), **SETTINGS | changes)
    return trainer_process.build_parts(
        SimpleNamespace(folder=folder, settings=settings, models=folder / "models", start=None)
    )


@pytest.fixture
def parts_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the trainer of a project with this training.toml does, as one text."""
    tables: list[Any] = []

    class Table:
        def narrowed(self, text: Any, *limits: Any) -> Table:
            tables.append(limits)
            return self

    monkeypatch.setattr(
        plan, "build_table", lambda *given, **named: tables.append(given[:3]) or Table()
    )
    monkeypatch.setattr(plan, "Tagger", Recorder)
    monkeypatch.setattr(tagger_module, "Tagger", Recorder)

    def observe(toml: str, **changes: Any) -> str:
        tables.clear()
        parts = build_parts(tmp_path, toml, **changes)
        learner = parts.learner.keywords
        trained = learner["tagger"](
            [Sentence("a", ("x",), ("O",))], 3, np.random.default_rng(0), None
        )
        mixer = learner["augmenter"](1)
        judge = getattr(mixer, "discriminator", None)
        models = ("table", "discriminator")
        shown = [
            trained.notes,
            [parts.steps(10), parts.steps(10_000)],
            learner["policy"],
            learner["rate"],
            {key: value for key, value in vars(mixer).items() if key not in models},
            judge and (judge.model, judge.base),
            tables[:2],
            (parts.without_entity, parts.apart),
            (parts.reading.config.adapt, parts.reading.config.seed),
            parts.teach.args[0].self_training,
        ]
        return repr(shown)

    return observe


@pytest.mark.parametrize("key", keys())
def test_every_key_is_obeyed_or_refused(key: str, parts_of) -> None:
    section, _, name = key.rpartition(".")
    line = f"{name} = {json.dumps(another(key))}\n"
    toml = f"[{section}]\n{line}" if section else line

    if key in IN_PROJECT:
        setting = IN_PROJECT[key]
        with pytest.raises(
            ConfigError, match=f"{key} is a setting .* FOLDER --set {setting}=VALUE"
        ):
            parts_of(toml)
        assert parts_of("", **{setting: another(key)}) != parts_of("")
    elif key in REFUSED or section in REFUSED:
        with pytest.raises(
            ConfigError, match=f"{key} has no effect on a project: .*remove the key"
        ):
            parts_of(toml)
    else:
        assert parts_of(toml) != parts_of(""), "accepted, and nothing changed"


def test_what_is_refused_is_a_key_of_the_config() -> None:
    names = {name for key in keys() for name in (key, key.partition(".")[0])}

    assert set(REFUSED) <= names


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[trainin]\nepochs = 3\n", "trainin: there is no such key; did you mean training?"),
        ("[training]\nepochs = 0\n", "training.epochs must be at least 1; got 0"),
        ("[training\n", "cannot read the config"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_project(
    toml: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / FILE).write_text(toml)

    with pytest.raises(ConfigError) as caught:
        project_config(tmp_path, ProjectSettings("people", ("PER",)))

    assert message in str(caught.value) and str(tmp_path) in str(caught.value)


def test_settings_that_contradict_each_other_name_the_project(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"query.policy lc needs tagger.head crf") as caught:
        project_config(tmp_path, ProjectSettings("people", ("PER",), policy="lc", head="linear"))

    assert str(tmp_path) in str(caught.value)


def test_project_toml_and_training_toml_make_one_config(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('"augment.window" = 4\n[tagger]\ndevice = "cpu"\n')

    config = project_config(tmp_path, ProjectSettings("people", ("PER",), rate=0.3, seed=3))

    assert (config.augment.rate, config.tagger.head, config.seed) == (0.3, "crf", 3)
    assert (config.augment.window, config.tagger.device) == (4, "cpu")


def test_a_project_has_defaults_that_simulations_have_not(tmp_path: Path) -> None:
    config = project_config(tmp_path, ProjectSettings("people", ("PER",)))

    assert (config.augment.window, config.query.without_entity, config.query.apart) == (3, 0.1, 20)


@pytest.mark.parametrize(
    ("toml", "steps"),
    [
        ("", (300, 600, 1000)),
        ("[training]\nepochs = 5\n", (150, 300, 500)),
        ("[training]\nmin_steps = 50\n", (50, 50, 1000)),
        ("[training]\nsteps = 17\n", (17, 17, 17)),
    ],
)
def test_a_project_takes_enough_steps_for_its_labeled_sentences(toml: str, steps, tmp_path) -> None:
    assert tuple(map(build_parts(tmp_path, toml).steps, (99, 100, 3200))) == steps


def test_a_projects_models_train_at_the_default_rate_with_which_they_were_measured(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(plan, "Tagger", Recorder)
    parts = build_parts(tmp_path, "")
    sentences = [Sentence("a", ("x",), ("O",))] * 300
    for fit in (parts.learner.keywords["tagger"], parts.student(sentences)):
        assert fit(sentences, 600, np.random.default_rng(0), None).notes[-1].lr is None
