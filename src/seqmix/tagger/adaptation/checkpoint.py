"""Keep how far masked-LM training has come, so that a killed one resumes to the same bytes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from seqmix.data.files import replacing

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW knows of a parameter
_CPU, _GPU = "rng/cpu", "rng/cuda"


@dataclass
class Checkpoint:
    """A file that is written every few seconds of training, and read when it starts again."""

    path: Path
    every: float = 120.0
    _epoch_rng: Any = field(default=None, init=False)  # the generator's state before the epoch
    _saved: float = field(default_factory=time.monotonic, init=False)

    def start_epoch(self, rng: np.random.Generator) -> None:
        """Note the generator before the epoch draws from it; all draws are made at once."""
        self._epoch_rng = rng.bit_generator.state

    def save_if_due(self, model: nn.Module, optimizer: torch.optim.Optimizer, done: int) -> None:
        """Write weights, optimizer and generators after `done` steps, if it is time to."""
        if time.monotonic() - self._saved < self.every:
            return
        tensors = {_CPU: torch.get_rng_state()}
        for name, parameter in model.named_parameters():
            tensors[name] = parameter.detach().cpu()
            tensors |= {f"{key}/{name}": optimizer.state[parameter][key] for key in _MOMENTS}
            if parameter.device.type == "cuda":
                tensors[_GPU] = torch.cuda.get_rng_state(parameter.device)
        described = {"done": str(done), "rng": json.dumps(self._epoch_rng)}
        with replacing(self.path) as beside:
            save_file({key: t.cpu().contiguous() for key, t in tensors.items()}, beside, described)
        self._saved = time.monotonic()

    def restore(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, rng: np.random.Generator
    ) -> int:
        """Return how many steps were done, 0 without a file that fits, and put all back."""
        try:
            with safe_open(self.path, framework="pt") as file:
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
                described = file.metadata()
            done, state = int(described["done"]), json.loads(described["rng"])
            parameters = dict(model.named_parameters())
            if any(tensors[name].shape != p.shape for name, p in parameters.items()):
                return 0
            rng.bit_generator.state = state
            moments = {
                name: {key: tensors[f"{key}/{name}"] for key in _MOMENTS} for name in parameters
            }
        except (OSError, SafetensorError, KeyError, ValueError, TypeError):
            return 0
        for name, parameter in parameters.items():
            parameter.data.copy_(tensors[name])
            optimizer.state[parameter] = _on(parameter.device, moments[name])
            if parameter.device.type == "cuda" and _GPU in tensors:
                torch.cuda.set_rng_state(tensors[_GPU], parameter.device)
        torch.set_rng_state(tensors[_CPU])
        return done


def _on(device: torch.device, moments: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.to(device) for key, value in moments.items()}
