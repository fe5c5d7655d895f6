"""The recipe for few labels, on encoders small enough to train in a blink."""

from __future__ import annotations

import re

import numpy as np
import pytest

from seqmix.app.cli import run
from seqmix.app.few_labels import describe, few_labels_config, train_few_labels
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.tagger import Tagger
from seqmix.tagger.training import plain
from tests.support import tiny


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny.write_masked_lm(tmp_path_factory.mktemp("encoders") / "bert")


def small(encoder: str, **changes: object) -> dict[str, object]:
    return {
        "tagger.encoder": encoder,
        "training.min_steps": 8,
        "training.epochs": 1,
        "adapt.epochs": 1,
        "self_training.steps": 6,
        **changes,
    }


def text(n: int) -> list[Sentence]:
    return [
        Sentence(f"text/{i}", (*sentence.tokens, f"x{i}")) for i, sentence in enumerate(tiny.toy(n))
    ]


def test_the_stages_are_reading_three_teachers_and_a_student(encoder):
    stages: list[str] = []
    steps: list[int] = []

    def watch(stage: str):
        stages.append(stage)
        return lambda done, total, loss: steps.append(done)

    config = few_labels_config(small(encoder))
    tagger = train_few_labels(tiny.toy(8), text(12), config, watch)

    assert stages == [
        "the encoder reads your text",
        "teacher 1 of 3",
        "teacher 2 of 3",
        "teacher 3 of 3",
        "the student",
    ]
    assert len(steps) >= 3 * 8 + 6
    assert tagger.encoder == encoder
    assert len(list(tagger.predict(text(3)))) == 3


def test_the_same_seed_gives_the_same_tagger_and_the_text_matters(encoder):
    def probabilities(n: int, seed: int) -> np.ndarray:
        config = few_labels_config(small(encoder), seed=seed)
        tagger = train_few_labels(tiny.toy(8), text(n), config)
        return np.concatenate(list(tagger.probabilities(text(2))))

    first = probabilities(12, 0)

    assert (first == probabilities(12, 0)).all()
    assert (first != probabilities(12, 1)).any()
    assert (first != probabilities(6, 0)).any()


def test_quick_leaves_the_teachers_out(encoder):
    stages: list[str] = []

    def watch(stage: str):
        stages.append(stage)
        return lambda done, total, loss: None

    config = few_labels_config(small(encoder), quick=True)
    train_few_labels(tiny.toy(8), text(6), config, watch)

    assert stages == ["the encoder reads your text", "training"]


def test_what_it_will_do_is_said_first(encoder):
    config = few_labels_config(small(encoder))

    assert describe(config, 50, 4000) == (
        "reading 4,050 sentences, 3 teachers, a student that learns from 3,000 sentences they tag"
    )


def test_without_labels_there_is_nothing_to_learn(encoder):
    with pytest.raises(DataError, match="no labeled sentence"):
        train_few_labels(text(3), text(3), few_labels_config(small(encoder)))


def test_the_command_learns_from_labels_and_text(encoder, tmp_path, capsys):
    labeled, raw = tmp_path / "labeled.conll", tmp_path / "notes.txt"
    formats.write(tiny.toy(8), labeled)
    raw.write_text("".join(" ".join(s.tokens) + "\n" for s in text(9)), encoding="utf-8")
    out = tmp_path / "ner"

    command = ["train", str(labeled), "--unlabeled", str(raw), "--out", str(out)]
    options = ["--encoder", encoder, "--set", "epochs=1", "--steps", "5", "--device", "cpu"]
    assert run([*command, *options]) == 0

    said = capsys.readouterr().err
    assert "here: reading 17 sentences, 3 teachers" in said
    assert Tagger.load(out).head == "crf"


def test_the_command_takes_enough_steps_unless_it_must_be_quick(
    encoder, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(plain, "plain_rate", lambda encoder, steps, sentences: steps / 1e6)
    labeled = tmp_path / "labeled.conll"
    formats.write(tiny.toy(40), labeled)
    command = ["train", str(labeled), "--encoder", encoder, "--device", "cpu"]

    assert run([*command, "--out", str(tmp_path / "a")]) == 0
    said = capsys.readouterr().err
    assert "40 sentences, 300 steps" in said and re.search(r"^about \d+ s here$", said, re.M)
    assert run([*command, "--out", str(tmp_path / "b"), "--quick"]) == 0
    assert "40 sentences, 20 steps" in capsys.readouterr().err
    rates = [Tagger.load(tmp_path / name).settings.lr for name in "ab"]
    assert rates == [3e-4, 5e-5], "the folder tells the rate, also a default one"
