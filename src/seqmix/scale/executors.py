"""Who does the work: processes of this machine, or a Ray cluster. What comes out is the same."""

from __future__ import annotations

from functools import partial

from seqmix.errors import ConfigError
from seqmix.scale import local_executor as workers
from seqmix.scale import ray_executor as ray_crew
from seqmix.scale.local_executor import Crew
from seqmix.scale.ray_executor import AS_MANY_AS_FIT as AS_MANY_AS_FIT

ENGINES = ("local", "ray")


def crew_of(engine: str, address: str | None = None, gpus: float = 0.0) -> Crew:
    """Who works through jobs. Each actor of a Ray cluster asks for so many GPUs; without an address, Ray is started here."""
    if engine not in ENGINES:
        raise ConfigError(f"--engine is {engine!r}; it is {' or '.join(ENGINES)}")
    if engine == "local":
        if address is not None:
            raise ConfigError(
                f"{address} is the address of a Ray cluster: give --engine ray:{address}"
            )
        return workers.work_through
    ray_crew.ray_module()  # if it is missing, that is said before anything starts
    return partial(ray_crew.work_through, address=address, gpus=gpus)
