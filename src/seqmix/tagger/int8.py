"""Scoring on a CPU with int8 weights: four to six tenths of the time, and a ranking that hardly changes; see docs/performance.md.

For looking at a pool, not for training or for what is handed out. Activations are rounded too, batch by batch.
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


def quantized(network: Network) -> Network:
    """A copy whose encoder multiplies in int8; the head stays in float32."""
    if not works():
        raise ConfigError("int8 products do not work with this CPU or this torch; leave int8 off")
    copy = deepcopy(network).eval()
    for module in list(copy.encoder.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, Int8Linear(child))
    return copy


def whole(network: Network) -> Network:
    """The same network, unless its weights have been rounded."""
    if any(isinstance(module, Int8Linear) for module in network.encoder.modules()):
        raise ModelError(
            "this tagger's weights are int8, which is for scoring; train or save the one it was made from"
        )
    return network


class Int8Linear(nn.Module):
    """A linear layer that keeps its weights as int8, with one scale for each row."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach()
        scales = weight.abs().amax(1).clamp(min=1e-8).double() / 127
        with (
            warnings.catch_warnings()
        ):  # torch means to take this away one day; `works` then says so
            warnings.simplefilter("ignore")
            rows = torch.quantize_per_channel(
                weight, scales, torch.zeros_like(scales, dtype=torch.long), 0, torch.qint8
            )
        bias = None if linear.bias is None else linear.bias.detach()
        self._packed: Any = torch.ops.quantized.linear_prepack(rows, bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """The product and the bias in float32."""
        # subtle: activations take 7 bits, since CPUs without VNNI add two products in 16 bits, which would overflow
        made: Tensor = torch.ops.quantized.linear_dynamic(inputs, self._packed, reduce_range=True)
        return made


_PROBE = """
import torch
from seqmix.tagger.int8 import Int8Linear
assert Int8Linear(torch.nn.Linear(64, 64))(torch.ones(4, 64)).isfinite().all()
"""


@cache
def works() -> bool:
    """Whether CPU and torch have it. subtle: tried in a process of its own, since a missing instruction kills the one that uses it."""
    return (
        subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=False).returncode
        == 0
    )
