"""Several processes that train one tagger: each takes its share of every batch, and their gradients are added up.

`accelerate launch` (or torchrun, or mpirun) starts the processes and says in the environment how many there are. Without it this process is
alone, nothing is imported, and the training is what it was. All draw the same batches and make the same steps, so all end with the same
weights; only the first speaks and writes. Memory is not shared out: every process holds the whole network and the whole data.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from seqmix.errors import ConfigError, DataError, MissingExtraError, ModelError

_COUNT = (
    "WORLD_SIZE",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
)  # the first is torch's, the others MPI's
_INDEX = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
_PATIENCE = 30.0  # seconds that a process leaves to others to say what went wrong and to end; on a busy machine ending takes ten


@dataclass(frozen=True)
class Processes:
    """This process among those of one training."""

    index: int = 0
    count: int = 1
    device: str | None = None

    @property
    def first(self) -> bool:
        """Whether this is the one that speaks and writes."""
        return self.index == 0

    def share(
        self, batch: Sequence[int], rows: Sequence[np.ndarray[Any, Any]]
    ) -> tuple[Sequence[int], float]:
        """This process's sentences of a batch, and the weight at which their losses add up to the batch's, a mean over labeled words.

        subtle: where a batch has fewer sentences than there are processes, some take its first at weight 0, because all must have the
        same gradients to add up.
        """
        if self.count == 1:
            return batch, 1.0
        own = batch[self.index :: self.count]
        return (own, labeled(own, rows) / labeled(batch, rows)) if own else (batch[:1], 0.0)

    def add_up(self, parameters: Iterable[nn.Parameter], loss: Tensor) -> Tensor:
        """Give every process the sum of all gradients, and the sum of all losses, in one message."""
        if self.count == 1:
            return loss
        used = [
            (parameter, parameter.grad) for parameter in parameters if parameter.grad is not None
        ]  # a pooler is not
        flat = torch.cat([*(grad.flatten() for _, grad in used), loss[None]])
        with _all_there(self.count):
            distributed.all_reduce(flat)
        sums = flat[:-1].split([grad.numel() for _, grad in used])
        for (parameter, grad), summed in zip(used, sums, strict=True):
            parameter.grad = summed.view_as(grad)
        return flat[-1].clone()  # a view would keep all gradients alive

    def check_same(self, number: int) -> None:
        """Refuse to train on what is not the same everywhere: shares of different batches would add up to nonsense."""
        if self.count == 1:
            return
        own = torch.tensor([number], device=self.device)
        seen = [torch.zeros_like(own) for _ in range(self.count)]
        with _all_there(self.count):
            distributed.all_gather(seen, own)
        if len({int(other) for other in seen}) > 1:
            raise DataError(
                f"the {self.count} processes have different data or seeds; give all machines the same files and command"
            )


ALONE = Processes()


@contextmanager
def joined(device: str | None = None) -> Iterator[Processes]:
    """The processes that a launcher has started, connected (once in their life), each with a GPU if there are any; else this one, alone."""
    count = _number(_COUNT, 1)
    if count <= 1:
        yield Processes(device=device)
        return
    index = _number(_INDEX, None)
    connected = distributed.is_initialized()  # by the caller's own script, which will want to go on
    try:
        state, own = _connect(count, device)
        yield Processes(state.process_index, state.num_processes, own)
        if not connected:
            state.destroy_process_group()  # now, while all have just met; whoever still writes keeps nobody waiting
    except Exception:
        if index:  # most errors are everyone's. The first process says them, and its end makes the launcher end the others
            time.sleep(_PATIENCE)
        raise


def left_alone() -> bool:
    """Whether `accelerate launch` was asked for several processes and has started one, as it does with --cpu and where it sees no GPUs."""
    return (
        "ACCELERATE_USE_CPU" in os.environ
        and "MASTER_PORT" in os.environ
        and _number(_COUNT, 1) <= 1
    )


def _connect(count: int, device: str | None) -> tuple[Any, str]:
    """Accelerate's view of this process, and the device it trains on."""
    asked_for_cpu = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    kind = device or ("cuda" if torch.cuda.is_available() and not asked_for_cpu else "cpu")
    if kind not in ("cpu", "cuda"):
        raise ConfigError(
            f"the device is {kind!r}, but there are {count} processes, each with its own; give cpu or cuda"
        )
    here, gpus = _number(("LOCAL_WORLD_SIZE",), 1), torch.cuda.device_count()
    if kind == "cuda" and here > gpus:
        raise ConfigError(
            f"{here} processes want a GPU each and torch sees {gpus}; give --num_processes {max(1, gpus)}, or --device cpu"
        )
    try:
        accelerate = importlib.import_module("accelerate")
    except ImportError as error:
        raise MissingExtraError("accelerate", f"training in {count} processes") from error
    try:
        state = accelerate.PartialState(cpu=kind == "cpu")
    except (
        RuntimeError,
        ValueError,
    ) as error:  # an address that is not there, a port that is taken, a variable that is missing
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"the {count} processes did not find each other: {why}; start them with `accelerate launch`"
        ) from error
    if state.num_processes != count:
        raise ConfigError(
            f"{count} processes were started but {state.num_processes} found each other; start them with `accelerate launch`"
        )
    return state, "cpu" if kind == "cpu" else str(state.device)


@contextmanager
def _all_there(count: int) -> Iterator[None]:
    """A message that cannot be sent means that a process is gone."""
    try:
        yield
    except RuntimeError as error:
        time.sleep(_PATIENCE)  # it has said why, and the launcher is about to end this one too
        raise ModelError(
            f"another of the {count} processes ended early; its own message says why, or the system ended it"
        ) from error


def labeled(sentences: Sequence[int], rows: Sequence[np.ndarray[Any, Any]]) -> int:
    """What a loss of these sentences is divided by."""
    return max(1, sum(int((~np.isnan(rows[i][:, 0])).sum()) for i in sentences))


def _number(names: Sequence[str], default: int | None) -> int:
    """A number that the launcher has put into the environment, under any of its names."""
    name = next((name for name in names if name in os.environ), None)
    if name is None:
        if default is None:
            raise ConfigError(
                f"{_COUNT[0]} is set but {names[0]} is not; start with `accelerate launch`, or unset {_COUNT[0]}"
            )
        return default
    try:
        return int(os.environ[name])
    except ValueError:
        raise ConfigError(
            f"the environment variable {name} is {os.environ[name]!r}; it must be a whole number"
        ) from None
