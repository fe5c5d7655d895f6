"""Adapting: the loss falls, the folder is an ordinary encoder, what cannot work is refused."""

from __future__ import annotations

import hashlib
import json
import math
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from seqmix.errors import ConfigError, DataError, ModelError
from seqmix.starter import load_encoder
from seqmix.starter.loader import base_encoder, starter_tokenizer
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.adaptation import adapt as adapting
from seqmix.tagger.adaptation import masked_lm
from seqmix.tagger.adaptation.adapt import adapt
from seqmix.tagger.adaptation.checkpoint import Checkpoint
from seqmix.tagger.adaptation.masked_lm import MaskedLM
from seqmix.tagger.adaptation.masking import Vocabulary, batches, drawn, rows_of
from seqmix.tagger.settings import AdaptSettings
from seqmix.tagger.windows import WordPieces
from tests.support import tiny

TEXT = [sentence.tokens for sentence in tiny.toy(60)]
_WIDE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "initializer_range": 0.2,
}
_STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
KINDS = {
    "bert": (BertForMaskedLM, BertConfig, {**_WIDE, "max_position_embeddings": 64}),
    "roberta": (
        RobertaForMaskedLM,
        RobertaConfig,
        {**_WIDE, "max_position_embeddings": 66, "pad_token_id": 1, "type_vocab_size": 1},
    ),
    "electra": (
        ElectraForMaskedLM,
        ElectraConfig,
        {**_WIDE, "embedding_size": 16, "max_position_embeddings": 64},
    ),
    "distilbert": (
        DistilBertForMaskedLM,
        DistilBertConfig,
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "albert": (
        AlbertForMaskedLM,
        AlbertConfig,
        {**_WIDE, **_STILL, "embedding_size": 16, "max_position_embeddings": 64},
    ),  # cannot pack
}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def write(kind: str, folder: Path) -> str:
    """A masked LM of random weights."""
    tokenizer = tiny.roberta_tokenizer() if kind == "roberta" else tiny.bert_tokenizer()
    model, config, shape = KINDS[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model(config(vocab_size=len(tokenizer), **shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> str:
    return write("bert", tmp_path_factory.mktemp("masked") / "bert")


@pytest.fixture(scope="module")
def adapted(tmp_path_factory, small) -> tuple[Path, adapting.Adapted]:
    """One adapted encoder for all who only look at it."""
    out = tmp_path_factory.mktemp("adapted") / "encoder"
    return out, adapt(
        small, TEXT, AdaptSettings(steps=40, lr=3e-3, held_out=0.2, seed=3), out, device="cpu"
    )


@pytest.fixture(scope="module")
def starter(tmp_path_factory) -> tuple[Path, adapting.Adapted]:
    out = tmp_path_factory.mktemp("adapted") / "starter"
    return out, adapt(
        "starter", TEXT[:24], AdaptSettings(steps=5, lr=1e-3, held_out=0.2), out, device="cpu"
    )


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


# what it does


def test_the_held_out_loss_falls(adapted):
    _, done = adapted

    assert done.before > 4  # random weights
    assert done.after < 0.8 * done.before


def test_the_starter_learns_from_a_little_text(starter):
    _, done = starter

    assert (done.lr, done.base) == (1e-3, "starter")
    assert done.after < 0.8 * done.before


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(small, tmp_path):
    actual = []
    for number, seed in enumerate((5, 5, 6)):
        torch.manual_seed(number)  # what the world does with torch's generator must not matter
        adapt(small, TEXT, AdaptSettings(steps=3, seed=seed), tmp_path / str(number), device="cpu")
        actual.append(contents(tmp_path / str(number)))

    assert actual[0] == actual[1]
    assert actual[0]["model.safetensors"] != actual[2]["model.safetensors"]


@pytest.mark.parametrize("last", [2, 4, 7])  # in the first epoch, at its end, in the second
def test_an_interrupted_adaptation_resumes_to_the_same_bytes(small, tmp_path, monkeypatch, last):
    monkeypatch.setattr(adapting, "Checkpoint", partial(Checkpoint, every=0.0))
    settings = AdaptSettings(epochs=3, batch_tokens=192, held_out=0, seed=5)
    steps: list[int] = []

    def interrupt(done: int, total: int, loss: float) -> None:
        steps.append(done)
        if done == last:
            raise KeyboardInterrupt

    adapt(small, TEXT, settings, tmp_path / "whole", device="cpu")
    place = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        adapt(small, TEXT, settings, tmp_path / "a", None, "cpu", interrupt, place)
    adapt(small, TEXT, settings, tmp_path / "a", None, "cpu", lambda d, *_: steps.append(d), place)

    assert steps == [*range(1, last + 1), *range(last, 13)]  # the step at hand is taken again
    assert contents(tmp_path / "a") == contents(tmp_path / "whole")
    assert not place.exists()


@pytest.mark.parametrize("content", [b"", b"no tensors", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_checkpoint_is_passed_over(small, tmp_path, content):
    (tmp_path / "kept").write_bytes(content)
    steps: list[int] = []

    adapt(
        small, TEXT, AdaptSettings(steps=2), tmp_path / "a", None, "cpu",
        lambda done, *_: steps.append(done), tmp_path / "kept",
    )  # fmt: skip

    assert steps == [1, 2]


def test_a_generator_stands_in_for_the_seed(small, tmp_path):
    adapt(small, TEXT, AdaptSettings(steps=3, seed=5), tmp_path / "a", device="cpu")
    adapt(small, iter(TEXT), AdaptSettings(steps=3), tmp_path / "b", rng(5), "cpu")

    assert (
        contents(tmp_path / "a")["model.safetensors"]
        == contents(tmp_path / "b")["model.safetensors"]
    )
    assert json.loads((tmp_path / "b" / "adapt.json").read_text())["settings"]["seed"] is None


def test_torchs_own_generator_is_left_as_it_was(small, tmp_path):
    before = torch.get_rng_state()
    adapt(small, TEXT, AdaptSettings(steps=2), tmp_path / "a", device="cpu")

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"epochs": 3}, 12), ({"epochs": 3, "steps": 4}, 4), ({"steps": 7}, 7)],
)
def test_steps_are_epochs_of_batches_unless_they_are_given(small, tmp_path, settings, expected):
    seen: list[tuple[int, int]] = []
    given = AdaptSettings(
        batch_tokens=192, held_out=0, **settings
    )  # 60 sentences are 11 rows of 64 pieces: 4 batches
    done = adapt(
        small,
        TEXT,
        given,
        tmp_path / "a",
        device="cpu",
        progress=lambda step, total, loss: seen.append((step, total)),
    )

    assert done.steps == expected
    assert seen == [(step, expected) for step in range(1, expected + 1)]


def test_the_rate_warms_up_and_decays_and_layer_norms_are_not_decayed(small, tmp_path, monkeypatch):
    rates: list[float] = []
    decays: dict[float, set[int]] = {}

    class Recording(torch.optim.AdamW):
        def step(self, *given, **more):
            rates.append(self.param_groups[0]["lr"])
            decays.update(
                {
                    group["weight_decay"]: {p.dim() for p in group["params"]}
                    for group in self.param_groups
                }
            )
            return super().step(*given, **more)

    monkeypatch.setattr(torch.optim, "AdamW", Recording)
    adapt(small, TEXT, AdaptSettings(steps=20, lr=1e-3), tmp_path / "a", device="cpu")

    assert rates == pytest.approx(
        [0.5e-3, 1e-3, *(1e-3 * (20 - step) / 18 for step in range(2, 20))]
    )
    assert decays == {0.01: {2}, 0.0: {1}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_scores_are_those_of_each_sentence_on_its_own(kind, tmp_path):
    """Packed rows and a head that sees hidden places only, against the plain model.

    That one sees one sentence at a time and gives all its logits.
    """
    folder = write(kind, tmp_path / kind)
    model, tokenizer = load_encoder(folder, masked_lm=True)
    plain, _ = load_encoder(folder, masked_lm=True)
    lm, vocabulary = MaskedLM(model), Vocabulary.of(tokenizer)
    rows = rows_of(
        TEXT[:9],
        WordPieces(tokenizer, 64),
        vocabulary.special,
        True,
        lm.packs,
        lm.first_position,
        tokenizer.pad_token_id,
    )
    (batch,) = batches(
        rows,
        drawn(rows, 0.4, rng()),
        np.arange(len(rows)),
        1,
        vocabulary,
        rng(),
        torch.device("cpu"),
    )
    hidden = torch.zeros(batch.ids.shape, dtype=torch.bool)
    hidden.view(-1)[batch.at] = True
    expected = []
    with torch.inference_mode():
        for row in range(len(rows)):
            for number in range(1, rows.segments[row].max() + 1):
                own = torch.from_numpy(rows.segments[row] == number)
                expected.append(
                    plain(input_ids=batch.ids[row][own][None]).logits[0][hidden[row][own]]
                )
        actual = lm(batch)

    assert lm.packs == (kind != "albert")
    assert len(batch.at) > 10
    torch.testing.assert_close(actual, torch.cat(expected), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_encoder_adapts_and_stays_one(kind, tmp_path):
    done = adapt(
        write(kind, tmp_path / kind),
        TEXT,
        AdaptSettings(steps=20, lr=3e-3, held_out=0.2),
        tmp_path / "out",
        device="cpu",
    )
    tagger = Tagger(str(tmp_path / "out"), settings=Settings(steps=1), device="cpu").fit(
        tiny.toy(4), rng()
    )

    assert done.after < done.before
    assert len(list(tagger.predict(tiny.toy(3)))) == 3


def test_a_sentence_longer_than_the_limit_is_read_in_windows(small, tmp_path):
    long = [("the", "Lena", "visited", "Oslo") * 60]
    done = adapt(small, long, AdaptSettings(steps=2), tmp_path / "a", device="cpu")

    assert done.tokens == 240
    assert done.pieces > 240  # the overlap is read twice


def test_a_step_in_which_nothing_is_hidden_does_no_harm(small, tmp_path):
    adapt(small, [("the",)], AdaptSettings(steps=20, share=0.01), tmp_path / "a", device="cpu")

    weights = load_encoder(str(tmp_path / "a"))[0].parameters()
    assert all(torch.isfinite(weight).all() for weight in weights)


# what is held out


@pytest.mark.parametrize(
    ("n", "share", "expected"),
    [(49, 0.02, 0), (50, 0.02, 1), (199, 0.02, 3), (200, 0.02, 20), (5000, 0.02, 100), (300, 0, 0)],
)
def test_two_in_a_hundred_sentences_are_held_out_and_twenty_at_least_of_two_hundred(
    n, share, expected
):
    known, unseen = adapting.hold_out([(str(i),) for i in range(n)], share, rng())

    assert len(unseen) == expected
    assert sorted(known + unseen) == sorted((str(i),) for i in range(n))


def test_copies_of_a_held_out_sentence_are_not_trained_on():
    known, unseen = adapting.hold_out([(str(i % 200),) for i in range(600)], 0.02, rng())

    assert len(unseen) == len(set(unseen)) == 20
    assert not set(unseen) & set(known)
    assert len(known) == 3 * 180


def test_text_too_small_to_hold_any_out_has_no_losses(small, tmp_path):
    done = adapt(small, TEXT[:5], AdaptSettings(steps=1), tmp_path / "a", device="cpu")

    assert (done.held_out, done.before, done.after) == (0, None, None)
    assert json.loads((tmp_path / "a" / "adapt.json").read_text())["held_out_loss"] == {
        "before": None,
        "after": None,
    }


# what it writes


def test_the_folder_is_a_hugging_face_folder_and_says_what_was_done(adapted, small):
    out, done = adapted
    described = json.loads((out / "adapt.json").read_text(encoding="utf-8"))

    assert {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "adapt.json",
    } <= set(contents(out))
    assert [path.name for path in out.parent.iterdir()] == ["encoder"]  # nothing hidden beside it
    assert described["format_version"] == 1
    assert (described["base"], described["encoder"]) == (small, small)
    assert described["held_out_loss"] == {"before": done.before, "after": done.after}
    assert (described["steps"], described["lr"], described["settings"]["seed"]) == (40, 3e-3, 3)
    text = described["text"]
    assert (text["sentences"], text["tokens"], text["held_out"]) == (
        60,
        sum(map(len, TEXT)),
        done.held_out,
    )
    assert len(text.pop("sha256")) == 64


def test_it_loads_with_and_without_its_head_and_as_it_was_trained(adapted, small):
    out, _ = adapted
    masked, tokenizer = load_encoder(str(out), masked_lm=True)
    bare, _ = load_encoder(str(out))
    before, old_tokenizer = load_encoder(small, masked_lm=True)
    under, actual = masked.base_model.state_dict(), bare.state_dict()

    assert all(
        torch.equal(value, under[key])
        for key, value in actual.items()
        if not key.startswith("pooler.")
    )
    assert not torch.equal(
        under["embeddings.word_embeddings.weight"],
        before.base_model.state_dict()["embeddings.word_embeddings.weight"],
    )
    assert masked.get_output_embeddings().weight is masked.get_input_embeddings().weight
    assert {parameter.dtype for model in (masked, bare) for parameter in model.parameters()} == {
        torch.float32
    }
    assert masked.config.max_position_embeddings == before.config.max_position_embeddings
    assert tokenizer.get_vocab() == old_tokenizer.get_vocab()
    assert tokenizer.model_max_length == old_tokenizer.model_max_length


def test_an_adapted_starter_cuts_words_as_the_starter_does(starter):
    model, tokenizer = load_encoder(str(starter[0]))
    sentence = ["Reykjavík", "EU", "rejects", "1996-08-22", "ITALIAN", "don't", "日本"]
    ours, theirs = (WordPieces(one, 128) for one in (tokenizer, starter_tokenizer()))

    assert ours.words(sentence) == theirs.words(sentence)
    assert (ours.before, ours.after) == (theirs.before, theirs.after)
    assert (tokenizer.model_max_length, tokenizer.mask_token, len(tokenizer)) == (
        256,
        "[MASK]",
        28996,
    )
    assert base_encoder(str(starter[0])) == "starter"
    assert model.config.max_position_embeddings == 256


def test_an_adapted_encoder_adapts_again_and_keeps_its_root(adapted, small, tmp_path):
    out, first = adapted
    done = adapt(
        str(out),
        TEXT,
        AdaptSettings(steps=1, held_out=0.2, seed=3),
        tmp_path / "again",
        device="cpu",
    )

    assert (done.encoder, done.base) == (str(out), small)
    assert base_encoder(str(tmp_path / "again")) == small
    assert done.before == pytest.approx(
        first.after, abs=1e-4
    )  # the same sentences held out, the weights read back as they were


def test_a_tagger_trains_on_it_is_saved_and_read_back(adapted, tmp_path):
    tagger = Tagger(str(adapted[0]), settings=Settings(steps=2), device="cpu").fit(
        tiny.toy(6), rng()
    )
    tagger.save(tmp_path / "tagger")
    again = Tagger.load(tmp_path / "tagger", "cpu")

    assert [s.tags for s in again.predict(tiny.toy(6))] == [
        s.tags for s in tagger.predict(tiny.toy(6))
    ]


# the base of an encoder


@pytest.mark.parametrize("name", ["starter", "bert-base-cased", "no/such/folder"])
def test_an_encoder_that_was_not_adapted_is_its_own_base(name):
    assert base_encoder(name) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[1]", "cannot be read"),
        ('{"format_version": 1}', "does not name its base"),
    ],
)
def test_a_damaged_description_is_an_error_that_says_what_to_do(tmp_path, text, message):
    (tmp_path / "adapt.json").write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        base_encoder(str(tmp_path))

    assert str(caught.value).endswith("adapt again")


# what it refuses


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"steps": 0},
        {"batch_tokens": 0},
        {"max_pieces": 7},
        {"seed": -1},
        {"lr": 0.0},
        {"lr": math.nan},
        {"share": 0.0},
        {"share": 1.0},
        {"held_out": 1.0},
        {"held_out": -0.1},
        {"warmup": 1.0},
        {"weight_decay": math.nan},
        {"epsilon": 0.0},
        {"clip": 0.0},
    ],
    ids=str,
)
def test_settings_refuse_a_bad_value_and_name_it(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ConfigError) as caught:
        AdaptSettings(**wrong)

    assert str(caught.value).startswith(f"{name} must be ")
    assert str(caught.value).endswith(f"; got {value}")


@pytest.mark.parametrize("sentences", [[], [()], [(), []]])
def test_no_text_is_an_error(small, tmp_path, sentences):
    with pytest.raises(DataError, match="no sentence to adapt to"):
        adapt(small, sentences, AdaptSettings(), tmp_path / "a", device="cpu")


def test_text_of_unknown_words_is_an_error(small, tmp_path):
    with pytest.raises(DataError, match="no word in 2 sentences"):
        adapt(
            small, [("日本", "[MASK]"), ("[UNK]",)], AdaptSettings(), tmp_path / "a", device="cpu"
        )

    assert not (tmp_path / "a").exists()


def test_an_encoder_whose_files_lack_the_head_is_refused(tmp_path):
    """It would load, with a head drawn at random and without a word."""
    with pytest.raises(
        ModelError, match=r"has no masked-LM head to train with: its files lack cls\.predictions"
    ):
        adapt(
            tiny.write_bert(tmp_path / "bare"), TEXT, AdaptSettings(), tmp_path / "a", device="cpu"
        )


def test_a_kind_of_model_without_a_masked_lm_head_is_refused(tmp_path):
    GPT2LMHeadModel(GPT2Config(vocab_size=100, n_embd=8, n_layer=1, n_head=1)).save_pretrained(
        tmp_path / "gpt"
    )
    tiny.bert_tokenizer().save_pretrained(tmp_path / "gpt")
    with pytest.raises(
        ModelError, match="has no masked-LM head to train with: models of its kind have none"
    ):
        adapt(str(tmp_path / "gpt"), TEXT, AdaptSettings(), tmp_path / "a", device="cpu")


def test_a_tokenizer_without_a_mask_is_refused(tmp_path):
    folder = write("bert", tmp_path / "bert")
    config = json.loads((tmp_path / "bert" / "tokenizer_config.json").read_text())
    del config["mask_token"]
    (tmp_path / "bert" / "tokenizer_config.json").write_text(
        json.dumps(config | {"tokenizer_class": "PreTrainedTokenizerFast"})
    )
    with pytest.raises(ModelError, match="its tokenizer lacks a mask token"):
        adapt(folder, TEXT, AdaptSettings(), tmp_path / "a", device="cpu")


def test_an_unknown_encoder_is_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot load the model"):
        adapt(str(tmp_path / "nowhere"), TEXT, AdaptSettings(), tmp_path / "a", device="cpu")


@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_nothing_is_written_over(small, tmp_path, what):
    out = tmp_path / "out"
    {"folder": out.mkdir, "file": out.touch, "link": lambda: out.symlink_to(tmp_path / "nowhere")}[
        what
    ]()
    with pytest.raises(DataError, match="already exists"):
        adapt(small, TEXT, AdaptSettings(), out, device="cpu")


def test_a_place_that_cannot_be_written_is_refused_before_the_model_loads(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot write here"):
        adapt("no such model", TEXT, AdaptSettings(), tmp_path / "file" / "out", device="cpu")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_leave_to_write_is_refused(tmp_path):
    (tmp_path / "shut").mkdir(mode=0o500)
    with pytest.raises(DataError, match="writable"):
        adapt("no such model", TEXT, AdaptSettings(), tmp_path / "shut" / "out", device="cpu")


def test_a_loss_that_is_no_number_is_an_error_and_leaves_nothing(small, tmp_path, monkeypatch):
    monkeypatch.setattr(
        masked_lm.MaskedLM, "loss", lambda self, batch: self(batch).sum() * math.nan
    )
    with pytest.raises(ModelError, match="lower the learning rate"):
        adapt(small, TEXT, AdaptSettings(steps=3), tmp_path / "new" / "a", device="cpu")

    assert list(tmp_path.iterdir()) == []


def test_a_device_that_is_not_there_is_refused(small, tmp_path):
    with pytest.raises(ConfigError, match="device"):
        adapt(small, TEXT, AdaptSettings(), tmp_path / "a", device="warp")


@pytest.mark.gpu
def test_on_a_gpu_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in "ab":
        adapt("starter", TEXT * 20, AdaptSettings(steps=60), tmp_path / name, device="cuda")

    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert not torch.are_deterministic_algorithms_enabled()
