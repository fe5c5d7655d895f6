"""A key that training.toml accepts is obeyed by the trainer; any other is refused before a model loads."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seqmix.app import plan, trainer_process
from seqmix.app.config import Config
from seqmix.app.project_config import FILE, REFUSED, project_config
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.serve.settings import ProjectSettings
from seqmix.settings import described_keys
from seqmix.tagger import tagger as tagger_module

# a value of each key that changes what the trainer does; others follow from the default
VALUES: dict[str, Any] = {
    "seed": 7,
    "tagger.encoder": "other",
    "tagger.head": "crf",
    "tagger.device": "cuda",
    "training.steps": 17,
    "training.min_steps": 500,
    "training.lr": 0.5,
    "training.mixup": 0.2,
    "training.warmup": 0.5,
    "training.weight_decay": 0.5,
    "adapt.lr": 0.5,
    "self_training.steps": 3,
    "self_training.confidence": 0.5,
    "query.policy": "margin",
    "query.without_entity": 0.5,
    "query.tokens": 50,
    "augment.variant": "label",
    "augment.score_range": "0,500",
    "augment.windows": "spans",
    "augment.partners": "similar",
    "augment.base": "2",
    "augment.lm": "other",
    "augment.table": "contextual",
    "augment.distance": "cosine",
    "augment.max_uses": 2,
    "augment.weight": 0.5,
    "loop.slice": 300,
    "loop.stop_sentences": 9,
    "loop.stop_tokens": 9,
    "loop.stop_agreement": 0.5,
    "loop.stop_uncertainty": 0.5,
}


def keys() -> list[str]:
    found = []
    for name, field, _ in described_keys(Config):
        inner = [key for key, _, _ in described_keys(field.annotation)]
        found += [f"{name}.{key}" for key in inner] or [name]
    return found


def another(key: str) -> Any:
    if key in VALUES:
        return VALUES[key]
    section, _, name = key.partition(".")
    value = getattr(getattr(Config(), section), name)
    return (
        not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value / 2
    )


class Recorder:
    """In place of a tagger: notes what it was made with and trained with."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.notes: list[Any] = [given, named]
        self.settings = None
        self.tag_set = None

    def fit(self, sentences: Any, rng: Any, tag_set: Any, **named: Any) -> Recorder:
        self.notes.append(self.settings)
        return self


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

    def observe(toml: str) -> str:
        (tmp_path / FILE).write_text(toml)
        tables.clear()
        settings = ProjectSettings("people", ("PER",), head="linear", augment="sub", rate=0.2)
        project = SimpleNamespace(folder=tmp_path, settings=settings, models=tmp_path / "models")
        parts = trainer_process.build_parts(project)
        learner = parts.learner.keywords
        trained = learner["tagger"](
            [Sentence("a", ("x",), ("O",))], 3, np.random.default_rng(0), None
        )
        mixer = learner["augmenter"](1)
        judge = getattr(mixer, "discriminator", None)
        models = ("table", "discriminator")
        shown = [
            trained.notes,
            [learner["steps"](10), learner["steps"](10_000)],
            learner["policy"],
            learner["rate"],
            {key: value for key, value in vars(mixer).items() if key not in models},
            judge and (judge.model, judge.base),
            tables[:2],
            parts.without_entity,
        ]
        return repr(shown)

    return observe


@pytest.mark.parametrize("key", keys())
def test_every_key_is_obeyed_or_refused(key: str, parts_of) -> None:
    section, _, name = key.rpartition(".")
    line = f"{name} = {json.dumps(another(key))}\n"
    toml = f"[{section}]\n{line}" if section else line

    if key in REFUSED or section in REFUSED:
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
        (
            '[query]\npolicy = "lc"\n[tagger]\nhead = "linear"\n',
            "query.policy lc needs tagger.head crf",
        ),
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


def test_training_toml_counts_over_project_toml(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('"augment.rate" = 0.7\n[tagger]\nhead = "crf"\n')

    config = project_config(tmp_path, ProjectSettings("people", ("PER",), rate=0.3, seed=3))

    assert (config.augment.rate, config.tagger.head, config.seed) == (0.7, "crf", 3)
    assert (config.augment.window, config.query.without_entity) == (3, 0.1)
