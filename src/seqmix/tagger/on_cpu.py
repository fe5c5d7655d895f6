"""On a CPU: products by oneDNN, and of BERT's last layer only what words need when predicting.

The weights are the same as elsewhere: only rounding differs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import BertModel, PreTrainedModel
from transformers.activations import GELUActivation
from transformers.models.bert.modeling_bert import BertLayer

from seqmix.tagger.batches import Batch

FEW_ROWS = 128  # up to which the layout is worth keeping
PAYS = 16  # products of few rows that take as long as laying out


class OneDNNLinear(nn.Linear):
    """A linear layer whose products on a CPU are oneDNN's: MKL has no AVX-512 for AMD.

    oneDNN lays the weights out for each product. For few rows that is a fifth of the work, so a
    layer that meets few rows again and again keeps a copy laid out: the same product, bit by bit.
    """

    _few, packed, _packed_from = 0, None, (0, 0)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the product and the bias."""
        if inputs.device.type == "cpu" and torch.is_inference_mode_enabled():
            return self.multiply(inputs)
        if inputs.device.type == "cpu" and self.training and inputs.numel():
            product: Tensor = _Product.apply(inputs, self.weight, self.bias)  # type: ignore[no-untyped-call]
            return product
        return super().forward(inputs)

    def multiply(self, inputs: Tensor, then: str = "none") -> Tensor:
        """Return oneDNN's product and the bias, on request with `gelu` while it is in the cache."""
        few = inputs.numel() <= FEW_ROWS * self.in_features and not self.weight.is_inference()
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            inputs,
            self._laid_out() if few else self.weight,
            *(self.bias, then, [], "none" if then == "gelu" else ""),
        )
        return product

    def _laid_out(self) -> Tensor:
        """Return the weights as oneDNN reads them, once that has paid."""
        weights = (self.weight._version, self.weight.data_ptr())  # training changes the first
        if self._packed_from != weights:
            self._few, self.packed, self._packed_from = 0, None, weights
        self._few += 1
        if self.packed is None and self._few > PAYS:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), FEW_ROWS)
        return self.weight if self.packed is None else self.packed

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy takes along: tensors laid out cannot be copied."""
        return {key: value for key, value in self.__dict__.items() if key != "packed"}


class _Product(torch.autograd.Function):
    """The product of a layer's inputs and weights, and both gradients, by oneDNN."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the product and the bias."""
        ctx.save_for_backward(inputs, weight)
        return _product(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the inputs, the weights and the bias."""
        inputs, weight = ctx.saved_tensors
        (outer,) = gradients
        of_inputs, of_weight, of_bias = ctx.needs_input_grad
        rows = outer.flatten(0, -2)
        columns = inputs.flatten(0, -2).t()
        return (
            _product(outer, weight.t()) if of_inputs else None,
            _product(rows.t(), columns) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return product


def use_onednn(encoder: nn.Module) -> None:
    """Let the linear layers of an encoder use oneDNN; the weights stay as they are."""
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return
    for module in encoder.modules():
        if type(module) is nn.Linear and module.weight.dtype == torch.float32:
            module.__class__ = OneDNNLinear


def is_short_cut(encoder: PreTrainedModel, batch: Batch) -> bool:
    """Whether `word_states` computes what this encoder would."""
    return (
        type(encoder) is BertModel
        and not encoder.config.is_decoder
        and not encoder.training
        and torch.is_inference_mode_enabled()
        and batch.ids.device.type == "cpu"
        and int(batch.segments.max()) == 1  # one window in a row
    )


def word_states(encoder: BertModel, batch: Batch) -> Tensor:
    """Return BERT's last hidden state of each word's first piece [n_words, width].

    The last layer computes these pieces only, and the mask is one number for each piece.
    """
    padding = batch.segments == 0
    mask = None
    if bool(padding.any()):
        mask = torch.zeros(padding.shape).masked_fill_(padding, -torch.inf)[:, None, None]
    states = encoder.embeddings(input_ids=batch.ids, position_ids=batch.positions)
    *layers, last = encoder.encoder.layer
    for layer in layers:
        states = _after_attention(layer, _attended(layer, states, mask), states)
    attended = _attended(last, states, mask).flatten(0, 1).index_select(0, batch.words)
    return _after_attention(last, attended, states.flatten(0, 1).index_select(0, batch.words))


def _attended(layer: BertLayer, states: Tensor, mask: Tensor | None) -> Tensor:
    """Return what a layer's pieces take from each other [n_rows, width, size]."""
    attention = layer.attention.self
    heads = (*states.shape[:-1], -1, attention.attention_head_size)
    query, key, value = (
        project(states).view(heads).transpose(1, 2)
        for project in (attention.query, attention.key, attention.value)
    )
    mixed = scaled_dot_product_attention(query, key, value, mask, scale=attention.scaling)
    return mixed.transpose(1, 2).flatten(2)


def _after_attention(layer: BertLayer, attended: Tensor, states: Tensor) -> Tensor:
    """Return what a layer does with each piece by itself."""
    states = layer.attention.output(attended, states)
    dense, activation = layer.intermediate.dense, layer.intermediate.intermediate_act_fn
    if isinstance(dense, OneDNNLinear) and isinstance(activation, GELUActivation):
        wide = dense.multiply(states, "gelu")
    else:
        wide = activation(dense(states))
    result: Tensor = layer.output(wide, states)
    return result
