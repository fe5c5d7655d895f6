"""What is faster on a CPU gives the encoder's results and gradients, to rounding."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.batches import Batch, spread
from seqmix.tagger.network import Network
from seqmix.tagger.on_cpu import (
    FEW_ROWS,
    PAYS,
    OneDNNLinear,
    is_short_cut,
    use_onednn,
    word_states,
)

needs_onednn = pytest.mark.skipif(
    not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()),
    reason="this torch has no MKL that oneDNN could replace",
)


@pytest.fixture(params=[True, False], ids=["bias", "no bias"])
def layer(request) -> nn.Linear:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(48, 32, bias=request.param))
    use_onednn(layers)
    return layers[0]


@needs_onednn
def test_scores_differ_by_rounding_only(layer):
    inputs = torch.randn(3, 5, 48)

    with torch.inference_mode():
        actual = layer(inputs)

    expected = functional.linear(inputs.double(), layer.weight.double(), _double(layer.bias))
    assert isinstance(layer, OneDNNLinear)
    assert torch.allclose(actual.double(), expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 48), (2, 3, 48), (1, 1, 48)])
def test_training_differs_by_rounding_only(layer, shape):
    inputs, outer = torch.randn(shape, requires_grad=True), torch.randn(*shape[:-1], 32)

    actual = layer.train()(inputs)
    gradients = torch.autograd.grad(actual, [inputs, *layer.parameters()], outer)

    plain = [tensor.detach().double().requires_grad_() for tensor in (inputs, *layer.parameters())]
    expected = functional.linear(*plain)
    assert torch.allclose(actual.double(), expected, atol=1e-5)
    for gradient, of_torch in zip(
        gradients, torch.autograd.grad(expected, plain, outer.double()), strict=True
    ):
        assert gradient.shape == of_torch.shape
        assert torch.allclose(gradient.double(), of_torch, atol=1e-5)
    assert "Product" in type(actual.grad_fn).__name__ and set(layer.state_dict()) <= {
        "weight",
        "bias",
    }


def test_frozen_weights_and_inputs_get_no_gradient(layer):
    layer.train().requires_grad_(False)

    layer(inputs := torch.randn(5, 48, requires_grad=True)).sum().backward()

    assert inputs.grad is not None and layer.weight.grad is None
    assert not layer(torch.randn(5, 48)).requires_grad
    layer.requires_grad_()
    layer(torch.randn(5, 48)).sum().backward()
    assert layer.weight.grad is not None


def test_outside_training_and_inference_mode_the_product_is_torchs(layer):
    inputs = torch.randn(5, 48)

    actual = layer.eval()(inputs)

    assert torch.equal(actual, functional.linear(inputs, layer.weight, layer.bias))


@needs_onednn
@pytest.mark.parametrize("then", ["none", "gelu"])
def test_weights_that_are_laid_out_once_give_the_same_bits(layer, then):
    inputs = torch.randn(7, 48)

    with torch.inference_mode():
        products = [layer.multiply(inputs, then) for _ in range(PAYS + 2)]
        many = layer.multiply(inputs.repeat(FEW_ROWS, 1), then)

    assert layer.packed is not None
    assert all(torch.equal(products[0], product) for product in products)
    assert torch.allclose(many[:7], products[0], atol=1e-5)


@needs_onednn
def test_weights_that_have_changed_are_laid_out_again(layer):
    inputs = torch.randn(7, 48)

    def product():
        with torch.inference_mode():
            return [layer(inputs) for _ in range(PAYS + 2)][-1]

    before, copied = product(), deepcopy(layer)
    with torch.no_grad():
        layer.weight.mul_(2)
    fresh = nn.Sequential(nn.Linear(48, 32, bias=layer.bias is not None))
    use_onednn(fresh)
    fresh[0].load_state_dict(layer.state_dict())
    with torch.inference_mode():
        assert torch.equal(layer(inputs), fresh[0](inputs))
        assert torch.equal(copied(inputs), before)
        assert torch.equal(pickle.loads(pickle.dumps(copied))(inputs), before)
    with torch.inference_mode():
        assert torch.equal(product(), fresh[0](inputs))


@needs_onednn
def test_many_rows_and_weights_made_in_inference_mode_keep_no_copy(layer):
    with torch.inference_mode():
        made = nn.Sequential(nn.Linear(48, 32))
        use_onednn(made)
        for _ in range(PAYS + 2):
            layer(torch.randn(FEW_ROWS + 1, 48))
            made[0](torch.randn(2, 48))

    assert layer.packed is None and made[0].packed is None


def test_layers_that_are_not_in_float32_stay_as_they_are():
    layers = nn.Sequential(nn.Linear(4, 4).half())

    use_onednn(layers)

    assert type(layers[0]) is nn.Linear


@pytest.fixture
def network_and_batch(bert: str) -> tuple[Network, Batch]:
    settings = Settings(max_pieces=16)  # so that the last sentence is read in several windows
    tagger = Tagger(bert, settings=settings, device="cpu")
    tagger.start(TagSet(("O", "B-X", "I-X")), np.random.default_rng(0))
    texts = ("Lena lives in Oslo", "Rome", "Mary Smith works at Acme and visited Ada in Rome " * 3)
    sentences = [Sentence(str(i), tuple(text.split())) for i, text in enumerate(texts)]
    windows = tagger.pieces.encode(sentence.tokens for sentence in sentences)
    return tagger.network, spread(windows, tagger.device)[0]


def test_states_of_words_are_those_of_the_whole_encoder(network_and_batch):
    network, batch = network_and_batch
    mask = (batch.segments > 0).long()

    with torch.inference_mode():
        assert is_short_cut(network.encoder, batch)
        actual = word_states(network.encoder, batch)
        states = network.encoder(input_ids=batch.ids, attention_mask=mask).last_hidden_state

        expected = states.flatten(0, 1)[batch.words]
        assert (batch.segments == 0).any() and len(actual) == 4 + 1 + 30
        assert torch.allclose(actual, expected, atol=1e-5)
        assert torch.equal(network.hidden(batch), actual)


def test_training_reads_every_piece(network_and_batch):
    network, batch = network_and_batch

    assert not is_short_cut(network.encoder, batch)
    with torch.inference_mode():
        assert not is_short_cut(network.train().encoder, batch)


def test_other_encoders_read_every_piece(network_and_batch, roberta):
    tagger = Tagger(roberta, device="cpu").start(TagSet(("O",)), np.random.default_rng(0))

    with torch.inference_mode():
        assert not is_short_cut(tagger.network.encoder, network_and_batch[1])


def _double(bias: torch.Tensor | None) -> torch.Tensor | None:
    return None if bias is None else bias.double()
