"""The embedded models: read as they were stored, and still able to do what they learned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from seqmix.data.samples import sample
from seqmix.errors import ModelError
from seqmix.starter import load_encoder, load_language_model, loader
from tests.support import tiny

FILES = Path(loader.__file__).parent / "files"


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def masked():
    return load_encoder(masked_lm=True)


@pytest.fixture(scope="module")
def causal():
    return load_language_model()


def test_the_files_are_weights_configs_and_a_tokenizer_and_nothing_that_runs():
    assert sorted(path.name for path in FILES.iterdir()) == [
        "encoder.int8.safetensors",
        "encoder.json",
        "lm.int8.safetensors",
        "lm.json",
        "tokenizer.json",
        "types.json",
        "types.safetensors",
    ]
    for path in FILES.glob("*.safetensors"):
        with safe_open(
            path, "pt"
        ) as file:  # refuses whatever is no safetensors, a pickle by that name for one
            assert len(list(file.keys())) > (1 if path.name == "types.safetensors" else 50)
    for path in FILES.glob("*.json"):
        assert "auto_map" not in json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("which", ["encoder", "lm"])
def test_a_matrix_row_is_its_int8_row_times_its_scale(which, masked, causal):
    stored = load_file(FILES / f"{which}.int8.safetensors")
    state = (masked if which == "encoder" else causal)[0].state_dict()

    matrices = [key for key, value in stored.items() if value.dtype == torch.int8]
    assert len(matrices) > 20
    for key in matrices:
        for row in (0, 7, len(stored[key]) - 1):
            expected = stored[key][row].float() * stored[f"{key}.scale"][row].float()
            assert torch.equal(state[key][row], expected)
    for key, value in stored.items():
        if not key.endswith(".scale") and value.dtype != torch.int8:
            assert torch.equal(state[key], value.float())


@pytest.mark.parametrize("which", ["encoder", "lm"])
def test_int8_uses_its_range_in_every_row(which):
    """A scale too large would waste precision; one too small would have cut weights off."""
    stored = load_file(FILES / f"{which}.int8.safetensors")
    for key, value in stored.items():
        if value.dtype == torch.int8:
            assert (value.abs().amax(1)[stored[f"{key}.scale"] > 1e-7] >= 120).all(), key


def test_everything_is_float32_and_ready_to_predict(masked, causal):
    for model, _ in (masked, causal, load_encoder()):
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
        assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
        assert not model.training


def test_the_heads_share_the_embedding_matrix(masked, causal):
    (encoder, _), (lm, _) = masked, causal

    assert encoder.cls.predictions.decoder.weight is encoder.bert.embeddings.word_embeddings.weight
    assert encoder.cls.predictions.decoder.bias is encoder.cls.predictions.bias
    assert lm.lm_head.weight is lm.transformer.wte.weight


def test_the_bare_encoder_is_the_one_under_the_masked_lm(masked):
    bare, _ = load_encoder()
    under = masked[0].bert.state_dict()

    assert bare.state_dict().keys() == under.keys()
    assert all(torch.equal(value, under[key]) for key, value in bare.state_dict().items())
    assert (
        bare.config.num_hidden_layers,
        bare.config.hidden_size,
        bare.config.max_position_embeddings,
    ) == (6, 384, 256)


def test_the_tokenizer_knows_its_special_pieces(masked, causal):
    for (model, tokenizer), name in ((masked, "encoder"), (causal, "lm")):
        ids = (
            tokenizer.pad_token_id,
            tokenizer.unk_token_id,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
            tokenizer.mask_token_id,
        )
        assert ids == (0, 100, 101, 102, 103), name
        assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (101, 102)
        assert len(tokenizer) == model.config.vocab_size == 28996
        assert tokenizer.model_max_length == 256
    assert causal[0].config.bos_token_id == 101


def test_the_tokenizer_cuts_words_into_pieces_and_keeps_case_and_accents(masked):
    _, tokenizer = masked
    tokens = tokenizer("Lena left Reykjavík.").tokens()

    assert (tokens[:3], tokens[-2:]) == (["[CLS]", "Lena", "left"], [".", "[SEP]"])
    first, *further = tokens[3:-2]
    assert further and all(piece.startswith("##") for piece in further)
    assert first + "".join(piece[2:] for piece in further) == "Reykjavík"


def top(masked, text: str, n: int = 10) -> list[str]:
    model, tokenizer = masked
    encoded = tokenizer(text, return_tensors="pt")
    (at,) = (encoded.input_ids[0] == tokenizer.mask_token_id).nonzero(as_tuple=True)[0].tolist()
    with torch.inference_mode():
        return tokenizer.convert_ids_to_tokens(
            model(**encoded).logits[0, at].topk(n).indices.tolist()
        )


def test_the_masked_lm_knows_what_kind_of_word_is_missing(masked):
    months = {
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    }

    assert "Paris" in top(masked, "The capital of France is [MASK] .")
    assert top(masked, "He was born in New [MASK] City .", 3)[0] == "York"
    assert len(months & set(top(masked, "She was born on 12 [MASK] 1950 ."))) >= 8


def test_the_language_model_prefers_sentences_as_people_wrote_them(causal):
    model, tokenizer = causal
    rng = np.random.default_rng(0)

    def loss(tokens: list[str]) -> float:
        ids = torch.tensor(
            [[101, *tokenizer(" ".join(tokens), add_special_tokens=False).input_ids, 102]]
        )
        with torch.inference_mode():
            return torch.nn.functional.cross_entropy(
                model(input_ids=ids).logits[0, :-1], ids[0, 1:]
            ).item()

    sentences = [s for s in sample("gazette:dev") if 6 <= len(s) <= 20][:30]
    assert len(sentences) == 30
    won = [
        loss(list(s.tokens)) < loss([s.tokens[i] for i in rng.permutation(len(s))])
        for s in sentences
    ]

    assert sum(won) >= 24


def test_the_language_model_looks_back_only(causal):
    model, tokenizer = causal
    ids = tokenizer("Lena left Oslo for Bergen", return_tensors="pt").input_ids
    with torch.inference_mode():
        whole, half = model(input_ids=ids).logits, model(input_ids=ids[:, :4]).logits

    torch.testing.assert_close(whole[:, :4], half, atol=1e-4, rtol=0)


def test_files_that_do_not_fit_the_configuration_are_an_error(monkeypatch):
    """No silent random weights: a tensor that is missing is said."""
    weights = dict(loader.starter_weights("lm"))  # the loader keeps its own for the tests to come
    del weights["transformer.h.0.attn.c_attn.weight"]
    monkeypatch.setattr(loader, "starter_weights", lambda which: weights)

    with pytest.raises(ModelError, match="do not fit"):
        load_language_model()


def test_a_folder_is_read_with_and_without_the_masked_lm_head(tmp_path):
    name = tiny.write_bert(tmp_path / "bert")
    model, tokenizer = load_encoder(name)

    assert (model.config.hidden_size, tokenizer.is_fast, model.training) == (32, True, False)
    assert load_encoder(name, masked_lm=True)[0].cls is not None


def test_code_in_a_model_folder_is_not_run(tmp_path):
    """A folder whose config points at its own Python file: the file must stay unread."""
    folder = Path(tiny.write_bert(tmp_path / "bert"))
    (folder / "evil.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Evil: pass\n"
    )
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "evil",
        "auto_map": {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"},
    }
    (folder / "config.json").write_text(json.dumps(config))

    with pytest.raises(ModelError) as caught:
        load_encoder(str(folder))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_pickled_weights_are_not_opened(tmp_path):
    """A folder with pytorch_model.bin alone: whatever torch thinks of it, it must not run."""

    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    folder = Path(tiny.write_bert(tmp_path / "bert"))
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Evil()}, folder / "pytorch_model.bin")

    with pytest.raises(ModelError):
        load_encoder(str(folder))
    assert not (tmp_path / "ran").exists()
