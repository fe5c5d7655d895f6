"""Executors of jobs: processes of this machine or a Ray cluster, with the same results."""

from __future__ import annotations

from functools import partial

from seqmix.errors import ConfigError
from seqmix.scale import local_executor, ray_executor
from seqmix.scale.local_executor import Executor


def executor_of(engine: str, gpus: float = 0.0) -> Executor:
    """Return the executor of `local`, `ray` (started here) or `ray:ADDRESS`.

    Each Ray actor asks for this many GPUs.
    """
    name, colon, address = engine.partition(":")
    if name not in ("local", "ray") or (colon and (name == "local" or not address)):
        raise ConfigError(f"--engine must be local, ray or ray:ADDRESS; got {engine!r}")
    if name == "local":
        return local_executor.run_jobs
    ray_executor.ray_module()  # reports a missing Ray before anything starts
    return partial(ray_executor.run_jobs, address=address or None, gpus=gpus)
