"""Compute the size of the network a model folder describes, before memory is allocated for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from transformers import AutoModel, PretrainedConfig
from transformers.initialization import no_init_weights

_SPARE = 16  # parameters that may have no weights in the file, such as a pooler's
_MAX_COUNT = 10_000  # layers or labels: no encoder has as many


def check_counts(config: Path) -> None:
    """Refuse a config.json with endless layers or labels, of which transformers makes a list."""

    def check(part: dict[str, Any]) -> dict[str, Any]:
        for key, value in part.items():
            counts = ("layer" in key or "label" in key) and isinstance(value, int)
            if counts and value > _MAX_COUNT:
                raise ValueError(f"its config.json asks for more than {_MAX_COUNT} in {key!r}")
        return part

    json.loads(config.read_bytes(), object_hook=check)


def check_size(weights: Path, config: PretrainedConfig, n_tags: int) -> None:
    """Refuse a config whose network is not the one stored: a large number could fill the memory.

    The network is first built without memory, and no further than twice the tensors in the file.
    """
    with safe_open(weights, "pt") as file:
        names = file.keys()
        stored = {key: tuple(file.get_slice(key).get_shape()) for key in names}
    with at_most(2 * len(stored) + _SPARE), torch.device("meta"), no_init_weights():
        encoder = AutoModel.from_config(config, trust_remote_code=False)
    described = {
        f"encoder.{key}": tuple(value.shape) for key, value in encoder.state_dict().items()
    }
    _compare({**described, "classifier.weight": (n_tags, encoder.config.hidden_size)}, stored)


def _compare(
    described: Mapping[str, tuple[int, ...]], stored: Mapping[str, tuple[int, ...]]
) -> None:
    for key, shape in described.items():
        if ".pooler." in key:  # never used
            continue
        if stored.get(key) != shape:
            actual = (
                f"there it has {_dimensions(stored[key])}" if key in stored else "there is none"
            )
            raise ValueError(
                "its weights do not fit its config.json, "
                f"which asks for {key} of {_dimensions(shape)}; {actual}"
            )


def _dimensions(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "one number"


@contextmanager
def at_most(parameters: int) -> Iterator[None]:
    """Stop the building of a network that has more parameters than this, in this thread only."""
    thread, count = threading.get_ident(), 0

    def registered(module: nn.Module, name: str, parameter: Any) -> None:
        nonlocal count
        if threading.get_ident() != thread:
            return
        count += 1
        if count > parameters:
            raise ValueError(
                "its weights do not fit its config.json, "
                "which asks for far more tensors than are stored"
            )

    handle = register_module_parameter_registration_hook(registered)
    try:
        yield
    finally:
        handle.remove()
