"""Training: repeatable, scheduled as the paper says, and able to learn."""

from __future__ import annotations

import hashlib
import math
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError, ModelError, TagError
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.training import loop
from seqmix.tagger.training.parameters import parameter_groups
from seqmix.tagger.training.schedule import TrainingSet
from tests.support import tiny

heads = pytest.mark.parametrize("head", ["linear", "crf"])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def saved_bytes(tagger: Tagger, folder: Path) -> str:
    tagger.save(folder)
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@heads
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(bert, tmp_path, head):
    """subtle: the folder's weights lack the pooler, so what is drawn for it must be seeded too."""
    actual = []
    for number, seed in enumerate((5, 5, 6)):
        torch.manual_seed(number)  # what the world does with torch's generator must not matter
        tagger = Tagger(bert, head, Settings(steps=4, batch_size=8)).fit(tiny.toy(), rng(seed))
        actual.append(saved_bytes(tagger, tmp_path / str(number)))

    assert actual[0] == actual[1] != actual[2]


@heads
def test_torchs_own_generator_is_left_as_it_was(bert, head):
    before = torch.get_rng_state()
    Tagger(bert, head, Settings(steps=2)).fit(tiny.toy(8), rng())

    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_is_drawn_from_the_seed(bert):
    """Same batches (one holds all), same head: only dropout can differ."""
    network = Tagger(bert, "linear", Settings(steps=1)).fit(tiny.toy(8), rng())
    losses: list[float] = []
    for seed in (1, 1, 2):
        tagger = Tagger(bert, "linear", Settings(steps=1)).fit(tiny.toy(8), rng())
        loop.train(
            tagger.network,
            TrainingSet(
                network.pieces.encode(s.tokens for s in tiny.toy(8)),
                [tagger.tag_set.rows(s) for s in tiny.toy(8)],
            ),
            Settings(steps=1, dropout=0.5),
            1e-4,
            rng(seed),
            lambda done, total, loss: losses.append(loss),
        )

    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"epochs": -1},
        {"steps": 0},
        {"batch_size": 0},
        {"max_pieces": 7},
        {"lr": 0.0},
        {"lr": 1.0},
        {"lr": -1e-3},
        {"lr": math.nan},
        {"warmup": -0.1},
        {"warmup": 1.0},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"dropout": math.nan},
        {"weight_decay": -0.1},
        {"weight_decay": math.nan},
        {"epsilon": 0.0},
        {"clip": 0.0},
        {"clip": -1.0},
    ],
    ids=str,
)
def test_settings_refuse_a_bad_value_and_name_it(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ConfigError) as caught:
        Settings(**wrong)

    assert str(caught.value).startswith(f"{name} must be ")
    assert str(caught.value).endswith(f"; got {value}")


def test_settings_take_the_values_at_their_limits():
    Settings(
        epochs=1, steps=1, batch_size=1, max_pieces=8, lr=1e-9, warmup=0, dropout=0, weight_decay=0
    )


@pytest.mark.parametrize(
    ("settings", "n", "expected"),
    [
        (Settings(), 32, 10),
        (Settings(), 33, 20),
        (Settings(epochs=3, batch_size=4), 9, 9),
        (Settings(epochs=3, batch_size=4), 1, 3),
        (Settings(steps=17), 1000, 17),
    ],
)
def test_total_steps_round_the_last_batch_up(settings, n, expected):
    assert settings.total_steps(n) == expected


@contextmanager
def every_row(network, windows, weight_decay):
    """What `only_seen_embeddings` does, left out: the whole matrix is trained."""
    yield torch.arange(network.encoder.get_input_embeddings().num_embeddings), lambda rate: None


@pytest.mark.parametrize("kind", ["still_bert", "roberta"])
def test_training_only_the_seen_embeddings_changes_nothing(kind, request, monkeypatch):
    folder = request.getfixturevalue(kind)
    settings = Settings(steps=12, batch_size=4, lr=1e-3, dropout=0, weight_decay=0.5)
    corpus = [
        *tiny.toy(12),
        Sentence("pad", ("[PAD]", "<pad>", "left"), ("B-PER", "I-PER", "O")),
    ]  # a padding piece has no gradient
    quick = Tagger(folder, "crf", settings).fit(corpus, rng())
    monkeypatch.setattr(loop, "only_seen_embeddings", every_row)
    plain = Tagger(folder, "crf", settings).fit(corpus, rng())

    expected = dict(plain.network.named_parameters())
    actual = dict(quick.network.named_parameters())
    assert actual.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], atol=1e-6, rtol=0, msg=name)


def test_unseen_embedding_rows_decay_and_come_back(still_bert):
    settings = Settings(steps=10, lr=1e-2, dropout=0, weight_decay=0.1)
    before = Tagger(still_bert, "linear", Settings(steps=1, lr=1e-9)).fit(tiny.toy(4), rng())
    after = Tagger(still_bert, "linear", settings).fit(tiny.toy(4), rng())

    unseen = after.tokenizer.convert_tokens_to_ids(["Z", "##Z", "9"])
    old, new = (
        tagger.network.encoder.get_input_embeddings().weight[unseen] for tagger in (before, after)
    )
    rates = [1e-2 * min(step + 1, (10 - step) / 9) for step in range(10)]
    torch.testing.assert_close(
        new, old * math.prod(1 - rate * 0.1 for rate in rates), atol=1e-6, rtol=1e-5
    )
    assert len(after.network.encoder.get_input_embeddings().weight) == len(after.tokenizer)


def test_biases_and_layer_norms_are_not_decayed(bert):
    network = Tagger(bert, "crf", Settings(steps=1)).fit(tiny.toy(4), rng()).network
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    decayed = {
        names.pop(id(p)): group["weight_decay"]
        for group in parameter_groups(network, 0.01)
        for p in group["params"]
    }

    assert not names  # each parameter is in exactly one group
    for name, rate in decayed.items():
        assert rate == (
            0
            if name.endswith(".bias") or "LayerNorm" in name or name.startswith("chain.")
            else 0.01
        )
    assert decayed["classifier.weight"] == 0.01


@pytest.fixture
def rates(monkeypatch) -> list[float]:
    """The learning rate of each step as the optimizer sees it."""
    seen: list[float] = []

    class Recording(torch.optim.AdamW):
        def step(self, *given, **more):
            (rate,) = {group["lr"] / group["scale"] for group in self.param_groups}
            seen.append(rate)
            return super().step(*given, **more)

    monkeypatch.setattr(torch.optim, "AdamW", Recording)
    return seen


def test_the_rate_warms_up_over_a_tenth_and_decays_to_nothing(bert, rates):
    Tagger(bert, "linear", Settings(steps=40, batch_size=2, lr=1e-3)).fit(tiny.toy(4), rng())

    assert len(rates) == 40
    assert rates[:4] == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3])  # warm-up: 4 of 40
    assert rates[4:] == pytest.approx([1e-3 * (40 - step) / 36 for step in range(4, 40)])
    assert rates[-1] < 0.03e-3


def test_the_schedule_follows_the_true_number_of_steps_of_the_epochs(bert, rates):
    Tagger(bert, "linear", Settings(epochs=5, batch_size=3, lr=1e-3)).fit(tiny.toy(10), rng())

    assert len(rates) == 20
    assert max(rates) == pytest.approx(1e-3)
    assert rates.index(max(rates)) == 1


def test_the_default_rate_is_the_encoders_own(bert, rates):
    Tagger(bert, "linear", Settings(steps=1)).fit(tiny.toy(4), rng())

    assert rates == [5e-5]
    assert Tagger().learning_rate == 3e-4
    assert Tagger(settings=Settings(lr=1e-5)).learning_rate == 1e-5


@heads
def test_the_starter_learns_a_toy_corpus_in_a_few_steps(head):
    corpus = tiny.toy()
    tagger = Tagger("starter", head, Settings(steps=15, batch_size=24, lr=1e-3)).fit(corpus, rng())
    actual = tagger.predict(sentence.unlabeled() for sentence in corpus)

    assert score([s.tags for s in corpus], [s.tags for s in actual]).f1 == 1.0


def soften(sentence: Sentence) -> Sentence:
    """Hard tags mixed with a quarter of something else, every third row missing."""
    rows = [{tag: 0.75, "O" if tag != "O" else "B-LOC": 0.25} for tag in sentence.tags]
    return sentence.with_tags([None if i % 3 == 2 else row for i, row in enumerate(rows)])


@heads
def test_soft_and_missing_rows_train(still_bert, head):
    corpus = tiny.toy()
    losses: list[float] = []
    settings = Settings(steps=80, lr=5e-3, dropout=0, batch_size=24)
    tagger = Tagger(still_bert, head, settings).fit(
        [soften(s) for s in corpus], rng(), progress=lambda done, total, loss: losses.append(loss)
    )

    assert losses[-1] < 0.75 * losses[0]
    known = [
        (soft, hard, row)
        for s, p in zip(map(soften, corpus), tagger.probabilities(corpus), strict=True)
        for soft, hard, row in zip(s.tags, s.hardened().tags, p, strict=True)
    ]
    heaviest = [
        tagger.tag_set.tags[row.argmax()] == hard for soft, hard, row in known if soft is not None
    ]
    assert np.mean(heaviest) > 0.95
    if head == "linear":  # the CRF's expected score is no cross-entropy of marginals
        weights = [row.max() for soft, _, row in known if soft is not None]
        assert np.mean(weights) == pytest.approx(0.75, abs=0.1)  # as sure as it was told to be


def test_sentences_without_any_label_are_passed_over(bert, tmp_path):
    corpus = tiny.toy(8)
    bare = [sentence.unlabeled() for sentence in tiny.toy(30)]
    with_bare = Tagger(bert, "linear", Settings(steps=3)).fit(
        [*bare[:5], *corpus, *bare[5:]], rng()
    )
    without = Tagger(bert, "linear", Settings(steps=3)).fit(corpus, rng())

    assert saved_bytes(with_bare, tmp_path / "a") == saved_bytes(without, tmp_path / "b")


def test_nothing_labeled_is_an_error(bert):
    with pytest.raises(DataError, match="no labeled sentence"):
        Tagger(bert).fit([sentence.unlabeled() for sentence in tiny.toy(3)], rng())


def test_a_tag_outside_of_the_given_tag_set_is_an_error(bert):
    tag_set = Tagger(bert, settings=Settings(steps=1)).fit(tiny.toy(4), rng()).tag_set
    with pytest.raises(TagError, match="unknown tag"):
        Tagger(bert, settings=Settings(steps=1)).fit(
            [Sentence("x", ("a",), ("B-XYZ",))], rng(), tag_set
        )


def test_progress_counts_every_step(bert):
    seen: list[tuple[int, int]] = []
    Tagger(bert, "linear", Settings(steps=5)).fit(
        tiny.toy(4), rng(), progress=lambda done, total, loss: seen.append((done, total))
    )

    assert seen == [(done, 5) for done in range(1, 6)]


@heads
def test_a_loss_that_is_no_number_is_an_error_that_says_what_to_do(bert, head, monkeypatch):
    monkeypatch.setattr(Tagger, "learning_rate", 1e30)
    with pytest.raises(ModelError, match="lower the learning rate") as caught:
        Tagger(bert, head, Settings(steps=10)).fit(tiny.toy(4), rng())

    assert "\n" not in str(caught.value)


class StopTheWorldError(Exception):
    pass


def test_a_training_that_is_broken_off_leaves_a_tagger_that_predicts_without_dropout(bert):
    def stop(done: int, total: int, loss: float) -> None:
        raise StopTheWorldError

    tagger = Tagger(bert, "linear", Settings(steps=3)).fit(tiny.toy(4), rng())
    state = torch.get_rng_state()
    with pytest.raises(StopTheWorldError):
        tagger.fit(tiny.toy(4), rng(), warm=True, progress=stop)

    one, two = (np.concatenate(list(tagger.probabilities(tiny.toy(4)))) for _ in range(2))
    assert np.array_equal(one, two)
    assert len(tagger.network.encoder.get_input_embeddings().weight) == len(tagger.tokenizer)
    assert torch.equal(torch.get_rng_state(), state)
