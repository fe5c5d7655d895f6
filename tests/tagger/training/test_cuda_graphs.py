"""The step that a GPU replays is everyone else's step: the same weights come out on the CPU."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.training import cuda_graphs, loop
from seqmix.tagger.training.schedule import TrainingSet, weights_of
from tests.support.tiny import toy, write_bert, write_roberta


@pytest.mark.parametrize("head", ["linear", "crf"])
@pytest.mark.parametrize("kind", [write_bert, write_roberta])
def test_replayed_steps_learn_what_single_steps_learn(tmp_path, head, kind):
    check(kind, tmp_path, head, Settings(epochs=4, batch_size=10, lr=1e-3, dropout=0.0), toy(24))


def test_mixup_is_the_same_replayed(tmp_path):
    check(
        write_bert,
        tmp_path,
        "linear",
        Settings(epochs=4, batch_size=10, lr=1e-3, dropout=0.0, mixup=8.0),
        toy(24),
    )


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_labels_in_part_and_soft_rows_are_the_same_replayed(tmp_path, head):
    sentences = [
        Sentence(
            s.id,
            s.tokens,
            tuple(
                None if i == 1 else {tag: 0.7, "O": 0.3} if tag != "O" else tag
                for i, tag in enumerate(s.tags)
            ),
        )
        for s in toy(24)
    ]

    check(
        write_bert,
        tmp_path,
        head,
        Settings(epochs=4, batch_size=10, lr=1e-3, dropout=0.0),
        sentences,
    )


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_sentences_of_less_weight_are_replayed_with_it(head, tmp_path):
    settings = Settings(epochs=4, batch_size=10, lr=1e-3, dropout=0.0)
    weighted = [replace(s, weight=0.3 if at % 2 else 1.0) for at, s in enumerate(toy(24))]

    with_weights = check(write_bert, tmp_path, head, settings, weighted)
    without = check(write_bert, tmp_path, head, settings, toy(24))

    assert not all(torch.equal(a, b) for a, b in zip(with_weights, without, strict=True))


def test_a_stage_is_kept_and_starts_from_new_weights(tmp_path):
    settings = Settings(epochs=4, batch_size=10, lr=1e-3, dropout=0.0)
    first = check(write_bert, tmp_path, "linear", settings, toy(24))
    stages = len(cuda_graphs.stages)

    again = check(write_bert, tmp_path, "linear", settings, toy(24))

    assert len(cuda_graphs.stages) == stages
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def check(kind, folder, head, settings, sentences):
    """Train both ways and compare every weight; those of the replayed way."""
    encoder = kind(folder) if kind is write_roberta else kind(folder, dropout=0.0)
    if kind is write_roberta:
        strip_dropout(folder)
    tagger = Tagger(encoder, head, settings, device="cpu").start(
        TagSet.of(sentences), np.random.default_rng(0)
    )
    network = tagger.network
    data = TrainingSet(
        tagger.pieces.encode(s.tokens for s in sentences),
        [tagger.tag_set.rows(s) for s in sentences],
        (),
        weights_of(sentences),
    )
    replayed = deepcopy(network)
    losses: list[list[float]] = [[], []]
    for trained, log, run in (
        (network, losses[0], loop.run_steps),
        (replayed, losses[1], loop.replay_steps),
    ):
        before, loop.runner_for = loop.runner_for, lambda *_, run=run: run
        try:
            loop.train(
                trained,
                data,
                settings,
                1e-3,
                np.random.default_rng(3),
                lambda done, total, loss, log=log: log.append(loss),
            )
        finally:
            loop.runner_for = before
    pairs = zip(network.named_parameters(), replayed.named_parameters(), strict=True)
    for (name, a), (_, b) in pairs:
        if not name.endswith("key.bias"):  # its gradient is 0 but for rounding, which Adam blows up
            assert torch.allclose(a, b, atol=1e-4), name
    assert np.mean(losses[0]) == pytest.approx(np.mean(losses[1]), rel=1e-4)
    assert losses[0][-1] < losses[0][0]
    return [parameter.detach().clone() for parameter in replayed.parameters()]


def strip_dropout(folder):
    import json

    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(
        json.dumps({**config, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
    )
