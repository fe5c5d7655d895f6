"""Training that gives the same bytes twice, also on a GPU that is shared."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch

# cuBLAS repeats its results with either of these.
_WORKSPACE, _REPEATABLE = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw torch's randomness (dropout) from this seed; its state outside stays as it was."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def repeatable(device: torch.device, strict: bool) -> Iterator[None]:
    """Use kernels that add in a fixed order on a GPU.

    Without `strict`, an operation that has no such kernel is let pass: the quickest attention is
    one, since it adds gradients in the order in which its blocks happen to finish.
    """
    if device.type != "cuda":
        yield
        return
    flags = cast("Any", torch.utils.deterministic)
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    filled, workspace = flags.fill_uninitialized_memory, os.environ.get(_WORKSPACE)
    torch.use_deterministic_algorithms(True, warn_only=not strict)
    flags.fill_uninitialized_memory = False  # nothing here reads what it has not written
    if workspace not in _REPEATABLE:
        os.environ[_WORKSPACE] = _REPEATABLE[0]  # Hopper's default; torch wants it named
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deterministic.*")
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        flags.fill_uninitialized_memory = filled
        if workspace is None:
            del os.environ[_WORKSPACE]
        else:
            os.environ[_WORKSPACE] = workspace
