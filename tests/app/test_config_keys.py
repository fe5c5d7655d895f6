"""A key that simulate accepts changes what it does; any other is refused before a model loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqmix.app import plan
from seqmix.app.config import load_config
from seqmix.app.plan import build_plan
from seqmix.app.reading.data import read_splits
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.tagger.adaptation import adapt as adaptation
from tests.support.config_keys import Recorder, another, keys

REFUSED = {
    "mixed.guard": "only what .augment. generates has a guard",
    "training.members": "teachers are averaged already",  # of which STAGES has two
}
# every stage takes place, so that each key has something to change
STAGES = {
    "loop.seed_size": 5,
    "loop.rounds": 2,
    "query.size": 3,
    "adapt.epochs": 1,
    "self_training.teachers": 2,
    "augment.guard": 2,
    "mixed.variant": "sub",
    "mixed.score_range": "0,400",
}
ONE = [Sentence("a", ("x",), ("O",))]


@pytest.fixture
def observe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a simulation with these changes does, as one text."""
    notes: list[Any] = []

    class Table:
        def narrowed(self, text: Any, *limits: Any) -> Table:
            notes.append(limits)
            return self

    def note(result: Any = None):
        return lambda *arguments, **named: notes.append((arguments, named)) or result

    def mixed(augmenter: Any, *arguments: Any) -> list[Sentence]:
        notes.append((shown(augmenter), arguments[0], arguments[4:]))
        return []

    def self_trained(fit: Any, unlabeled: Any, how: Any, more: Any) -> Any:
        notes.append(how)
        if more is not None:
            more([], ONE * 10, np.random.default_rng(0))
        return fit

    def build_table(source: str, encoder: str, distance: str, *rest: Any, **named: Any) -> Table:
        notes.append((source, encoder, distance))
        return Table()

    monkeypatch.setattr(plan, "build_table", build_table)
    monkeypatch.setattr(plan, "Tagger", Recorder)
    monkeypatch.setattr(plan, "self_trained", self_trained)
    monkeypatch.setattr(plan, "mixed_lessons", mixed)
    monkeypatch.setattr(adaptation, "adapt", note())
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "dev", "test"):
        text = "".join(f"w{i} tag{i} B-X O\nx{i} y B-Y B-PER\n\n" for i in range(40))
        (data / f"{split}.conll").write_text(text)

    def observed(changes: dict[str, Any]) -> str:
        notes.clear()
        config = load_config(changes=STAGES | changes)
        splits = read_splits(str(data), config)
        made = build_plan(config, splits, tmp_path / "encoders")
        learner = made.learner.keywords
        trained = learner["tagger"](ONE, 3, np.random.default_rng(0), None)
        guard = made.guard
        assert isinstance(trained, Recorder)
        return repr(
            [
                notes,
                trained.notes,
                [(s.tokens, s.tags) for part in splits.values() for s in part[:20]],
                [s.id for s in [*made.seed_set, *made.pool]],
                (len(made.seed_set), made.rounds, made.sizes(1), made.stopping, made.seed),
                [learner["steps"](10), learner["steps"](10_000)],
                [learner[key] for key in ("policy", "part", "rate", "match_steps", "warm")],
                shown(learner["augmenter"](1)),
                guard and (guard.rate, guard.folds, guard.seed, guard.steps(10)),
            ]
        )

    return observed


def shown(augmenter: Any) -> Any:
    judge = getattr(augmenter, "discriminator", None)
    values = {k: v for k, v in vars(augmenter).items() if k not in ("table", "discriminator")}
    return values, judge and (judge.model, judge.base)


def test_the_same_config_does_the_same(observe) -> None:
    assert observe({}) == observe({})


@pytest.mark.parametrize("key", keys())
def test_every_key_is_obeyed_or_refused(key: str, observe) -> None:
    change = {key: another(key, load_config(changes=STAGES))}

    if key in REFUSED:
        with pytest.raises(ConfigError, match=f"{key}.*{REFUSED[key]}"):
            observe(change)
    else:
        assert observe(change) != observe({}), "accepted, and nothing changed"


def test_mixed_sentences_have_no_schedule() -> None:
    with pytest.raises(ConfigError, match=r"mixed.alpha must be a number; got \[8, 1\]"):
        load_config(changes={"mixed.alpha": [8, 1]})
