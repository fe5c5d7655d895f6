"""Which parameters are trained, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from seqmix.tagger.network import Network
from seqmix.tagger.windows import Window

# The CRF's learning rate over the encoder's: 3e-4 would move a transition by 0.02 in 70 steps.
_CHAIN_SCALE = 100.0


def parameter_groups(network: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the optimizer's groups.

    Biases and LayerNorm weights do not decay; the CRF's few weights start from zero and learn
    faster.
    """
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    chain: list[nn.Parameter] = []
    for name, parameter in network.named_parameters():
        if name.startswith("chain."):
            chain.append(parameter)
        elif parameter.dim() == 1 or "LayerNorm" in name or "layer_norm" in name:
            plain.append(parameter)
        else:
            decayed.append(parameter)
    groups = ((decayed, weight_decay, 1.0), (plain, 0.0, 1.0), (chain, 0.0, _CHAIN_SCALE))
    return [
        {"params": parameters, "weight_decay": decay, "scale": scale}
        for parameters, decay, scale in groups
        if parameters
    ]


@contextmanager
def only_seen_embeddings(
    network: Network, windows: Sequence[Sequence[Window]], weight_decay: float
) -> Iterator[tuple[torch.Tensor, Callable[[float], None]]]:
    """Train only the rows of the embedding matrix that occur in the data: half of a small encoder.

    Yields a map from piece id to row, and a function to call with each step's rate.

    subtle: the result is the same. Under AdamW a row without gradient moves by weight decay alone,
    and the product of those decays is applied to all unseen rows at the end.
    """
    table = network.encoder.get_input_embeddings()
    full, padding = table.weight, table.padding_idx
    ids = [window.ids for sentence in windows for window in sentence]
    seen = np.unique(np.concatenate([[padding or 0], *ids]))
    row_of = torch.zeros(len(full), dtype=torch.long)
    row_of[torch.from_numpy(seen)] = torch.arange(len(seen))
    index = torch.from_numpy(seen).to(full.device)
    shrink = 1.0

    def step_done(rate: float) -> None:
        nonlocal shrink
        shrink *= 1 - rate * weight_decay

    table.weight = nn.Parameter(full.detach()[index].clone())
    table.padding_idx = int(row_of[padding]) if padding is not None else None
    try:
        yield row_of, step_done
    finally:
        with torch.no_grad():
            full.mul_(shrink)
            full[index] = table.weight
        table.weight, table.padding_idx = full, padding
