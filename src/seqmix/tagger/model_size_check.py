"""How large a network a model folder describes, known before any memory is taken for it."""

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

_SPARE = 16  # parameters that may have no weights in the file, as a pooler's
_MOST = 10_000  # layers, or labels: no encoder has as many


def counts(config: Path) -> None:
    """Refuse a config.json with endless layers or labels before transformers reads it, which writes a list of them."""

    def check(own: dict[str, Any]) -> dict[str, Any]:
        for key, value in own.items():
            if ("layer" in key or "label" in key) and isinstance(value, int) and value > _MOST:
                raise ValueError(f"its config.json asks for more than {_MOST} in {key!r}")
        return own

    json.loads(config.read_bytes(), object_hook=check)


def fits(weights: Path, config: PretrainedConfig, n_tags: int) -> None:
    """Refuse a config whose network is not the one whose weights are stored: with a large enough number in it, it would fill the memory.

    The network is first built without memory. Even so its layers take time and space, so that is broken off as soon as it has far more
    than the file could fill; twice as many are let pass, since an encoder may set a parameter anew.
    """
    with safe_open(weights, "pt") as file:
        stored = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118  it is no mapping
    with _at_most(2 * len(stored) + _SPARE), torch.device("meta"), no_init_weights():
        encoder = AutoModel.from_config(config, trust_remote_code=False)
    described = {
        f"encoder.{key}": tuple(value.shape) for key, value in encoder.state_dict().items()
    }
    _compare({**described, "classifier.weight": (n_tags, encoder.config.hidden_size)}, stored)


def _compare(
    described: Mapping[str, tuple[int, ...]], stored: Mapping[str, tuple[int, ...]]
) -> None:
    for key, shape in described.items():
        if (
            ".pooler." not in key and stored.get(key) != shape
        ):  # the starter has no pooler, and none is used
            there = f"there it has {_shown(stored[key])}" if key in stored else "there is none"
            raise ValueError(
                f"its weights do not fit its config.json, which asks for {key} of {_shown(shape)}; {there}"
            )


def _shown(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "one number"


@contextmanager
def _at_most(parameters: int) -> Iterator[None]:
    """Break off the building of a network that has more parameters than this. subtle: the hook hears of other threads' networks too."""
    own, count = threading.get_ident(), 0

    def registered(module: nn.Module, name: str, parameter: Any) -> None:
        nonlocal count
        count += threading.get_ident() == own
        if count > parameters and threading.get_ident() == own:
            raise ValueError(
                "its weights do not fit its config.json, which asks for far more tensors than are stored"
            )

    handle = register_module_parameter_registration_hook(registered)
    try:
        yield
    finally:
        handle.remove()
