"""Training that gives the same bytes twice on a GPU, also on one that is shared."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch

_PRODUCTS, _FIXED = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")  # cuBLAS repeats with either


@contextmanager
def repeatable(device: torch.device, known: bool) -> Iterator[None]:
    """On a GPU, kernels that add in a fixed order.

    subtle: the quickest attention adds up gradients in the order in which its blocks happen to finish, and with `warn_only` torch would
    warn and keep it. Encoders that are less `known` here may hold an operation that has no such kernel, so for them it stays at that.
    """
    if device.type != "cuda":
        yield
        return
    flags = cast("Any", torch.utils.deterministic)
    was = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    filled, workspace = flags.fill_uninitialized_memory, os.environ.get(_PRODUCTS)
    torch.use_deterministic_algorithms(True, warn_only=not known)
    flags.fill_uninitialized_memory = False  # nothing here reads what it has not written
    if workspace not in _FIXED:
        os.environ[_PRODUCTS] = _FIXED[0]  # what Hopper takes anyway; torch asks for it by name
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deterministic.*")
            yield
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])
        flags.fill_uninitialized_memory = filled
        if workspace is None:
            del os.environ[_PRODUCTS]
        else:
            os.environ[_PRODUCTS] = workspace
