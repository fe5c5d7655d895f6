"""How long and how fast plain training goes where nothing is said about it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from seqmix.tagger import Settings
from seqmix.tagger.training.plain import enough_steps, plain_rate, plain_settings


@pytest.mark.parametrize(
    ("sentences", "steps"), [(1, 300), (50, 300), (100, 600), (700, 600), (3200, 1000)]
)
def test_plain_training_takes_enough_steps(sentences, steps):
    assert enough_steps(sentences) == steps


@pytest.mark.parametrize(
    ("encoder", "steps", "sentences", "rate"),
    [
        ("starter", 299, 200, 3e-4),
        ("starter", 300, 199, 3e-4),
        ("starter", 300, 200, 1e-4),
        ("adapted", 300, 200, 1e-4),
        ("bert-base-cased", 300, 200, 5e-5),
    ],
)
def test_only_long_trainings_of_the_starter_on_many_sentences_have_a_rate_of_their_own(
    encoder, steps, sentences, rate, tmp_path, monkeypatch
):
    adapted = {"format_version": 1, "base": "starter"}
    (tmp_path / "adapted").mkdir()
    (tmp_path / "adapted/adapt.json").write_text(json.dumps(adapted), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert plain_rate(encoder, steps, sentences) == rate


@pytest.mark.parametrize(
    ("settings", "steps", "rate"),
    [
        (Settings(), 600, 1e-4),
        (Settings(lr=5e-4), 600, 5e-4),
        (replace(Settings(), lr=5e-4), 600, 5e-4),
        (Settings(epochs=10), None, 3e-4),
        (Settings(steps=50), 50, 3e-4),
        (Settings(steps=1000), 1000, 1e-4),
    ],
)
def test_what_was_said_about_steps_and_rate_is_obeyed(settings, steps, rate):
    chosen = plain_settings(settings, 200, "starter")

    assert (chosen.steps, chosen.lr) == (steps, rate)
