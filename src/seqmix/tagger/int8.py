"""Predicting on a CPU with int8 weights: about half the time, and results that hardly change.

Activations are rounded too, batch by batch, so a sentence's result depends on the others in its
batch; docs/performance.md has the figures.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from copy import deepcopy
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from seqmix.errors import ConfigError, ModelError
from seqmix.tagger.network import Network


def quantized(network: Network, device: torch.device) -> Network:
    """Return a copy whose encoder multiplies in int8; the head stays in float32."""
    if device.type != "cpu":
        raise ConfigError(
            f"int8 is for CPUs, and this tagger is on {device}; give device cpu, or leave int8 off"
        )
    if not works():
        raise ConfigError("int8 products do not work with this CPU or this torch; leave int8 off")
    copy = deepcopy(network).eval()
    for module in list(copy.encoder.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, Int8Linear(child))
    return copy


def refuse_quantized(network: Network) -> None:
    """Refuse a network whose weights are int8."""
    if any(isinstance(module, Int8Linear) for module in network.encoder.modules()):
        raise ModelError(
            "this tagger's weights are int8, which is for scoring; "
            "train or save the one it was made from"
        )


class Int8Linear(nn.Module):
    """A linear layer that keeps its weights as int8, with one scale for each row."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        scales = weight.abs().amax(1).clamp(min=1e-8).double() / 127
        with warnings.catch_warnings():  # torch plans to remove this; `works` will then say so
            warnings.simplefilter("ignore")
            rows = torch.quantize_per_channel(
                weight, scales, torch.zeros_like(scales, dtype=torch.long), 0, torch.qint8
            )
        bias = None if linear.bias is None else linear.bias.detach()
        self._packed: Any = torch.ops.quantized.linear_prepack(rows, bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the product and the bias in float32."""
        product: Tensor = torch.ops.quantized.linear_dynamic(
            inputs, self._packed, reduce_range=not _has_vnni()
        )
        return product


@cache
def _has_vnni() -> bool:
    """Whether activations may take 8 bits; without VNNI sums in 16 bits overflow, and 7 must do."""
    return torch.cpu._is_vnni_supported()


_PROBE = """
import torch
from seqmix.tagger.int8 import Int8Linear
assert Int8Linear(torch.nn.Linear(64, 64))(torch.ones(4, 64)).isfinite().all()
"""


@cache
def works() -> bool:
    """Whether int8 products work here, tried in another process: a missing instruction kills it."""
    command = [sys.executable, "-c", _PROBE]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
