"""What is said about the length of a training, by a clock that only work moves.

A token of a tagger's training is a second, one that is read two, one that is tagged a third.
"""

from __future__ import annotations

import numpy as np
import pytest

from seqmix.app.few_labels import few_labels_config, train_few_labels
from seqmix.app.stages import expected
from seqmix.app.stages.expected import few_labels_seconds, plain_seconds
from seqmix.data.sentence import Sentence
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.adaptation.masked_lm import MaskedLM
from seqmix.tagger.network import Network
from tests.support import tiny


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny.write_masked_lm(tmp_path_factory.mktemp("encoders") / "bert")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    forward, read = Network.forward, MaskedLM.loss

    def network(self, batch, mixup=None):
        scores = forward(self, batch, mixup)
        clock.now += len(scores) * (1 if self.training else 1 / 3)
        return scores

    def masked_lm(self, batch):
        clock.now += 2 * int((batch.ids != 0).sum())
        return read(self, batch)

    monkeypatch.setattr(Network, "forward", network)
    monkeypatch.setattr(MaskedLM, "loss", masked_lm)
    monkeypatch.setattr(expected, "perf_counter", clock)
    return clock


def sentences(n: int, words: int = 0) -> list[Sentence]:
    return [
        Sentence(f"{i}", (*s.tokens, f"x{i}", *["left"] * words), (*s.tags, *["O"] * (words + 1)))
        for i, s in enumerate(tiny.toy(n))
    ]


@pytest.mark.parametrize("epochs", [20, 40])
def test_plain_training_takes_as_long_as_was_said(encoder, clock, epochs):
    corpus = [*sentences(32, words=4), *sentences(40)]
    tagger = Tagger(encoder, "crf", Settings(epochs=epochs), "cpu")

    said, start = plain_seconds(tagger, corpus), clock.now
    tagger.fit(corpus, np.random.default_rng(0))

    assert said / 1.5 < clock.now - start < 1.5 * said


def test_a_short_training_is_not_timed(encoder, clock):
    assert plain_seconds(Tagger(encoder, settings=Settings(steps=5)), sentences(8)) == 0
    assert clock.now == 0


@pytest.mark.parametrize("quick", [False, True])
def test_the_recipe_takes_about_as_long_as_was_said(encoder, clock, quick):
    changes = {
        "tagger.encoder": encoder,
        "training.min_steps": 12,
        "training.epochs": 1,
        "adapt.epochs": 2,
        "self_training.steps": 15,
    }
    config = few_labels_config(changes, quick)
    labeled, text = sentences(20), [s.unlabeled() for s in sentences(60, words=2)]

    said, start = few_labels_seconds(config, labeled, text), clock.now
    train_few_labels(labeled, text, config)

    assert said / 3 < clock.now - start < 3 * said
