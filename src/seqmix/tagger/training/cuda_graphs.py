"""Training on a GPU that never waits for the host: a step is captured as a CUDA graph and replayed.

A step of a small encoder is hundreds of kernels of a few microseconds.
Launched one by one they leave the GPU idle nine tenths of the time.
So batches get one fixed shape, those of many steps are copied to the device at once, and a counter
on the device selects the next: the host only replays.
A stage (weights, optimizer, graphs) is kept for the next training of the same shape.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from seqmix.tagger.batches import Batch
from seqmix.tagger.network import Mixup, Network, autocast
from seqmix.tagger.settings import Settings
from seqmix.tagger.training.graph_batches import Arrays, Shape, lay_out
from seqmix.tagger.training.schedule import Step, TrainingSet

_STEPS = 64  # whose batches are on the device at a time
_MAX_STAGES = 4
Losses = tuple[int, list[float]]  # the number of the first step, from 0, and the loss of each
MakeOptimizer = Callable[[nn.Module], torch.optim.Optimizer]
stages: OrderedDict[tuple[Any, ...], Stage] = OrderedDict()


def replay(
    network: Network,
    data: TrainingSet,
    steps: Sequence[Step],
    settings: Settings,
    make_optimizer: MakeOptimizer,
    seed: int,
) -> Iterator[Losses]:
    """Train a copy and overwrite the network with it at the very end."""
    device = next(network.parameters()).device
    stage = _stage_for(network, settings, make_optimizer)
    stage.start_from(network)
    longest = max(len(window.ids) for sentence in data.windows for window in sentence)
    width = next((w for w in (32, 64, 128) if longest <= w), longest)
    crf = network.chain is not None
    length = -(-max(len(rows) for rows in data.rows) // 16) * 16 if crf else 0
    complete = crf and not any(np.isnan(rows).any() for rows in data.rows)
    for first in range(0, len(steps), _STEPS):
        some = steps[first : first + _STEPS]
        shape, arrays = lay_out(
            data, some, width, settings.batch_size, length, complete, network.first_position
        )
        yield first, stage.run(shape, arrays, len(some), device, seed + first)
    stage.copy_to(network)


def forget_stages() -> None:
    """Free the memory that stages hold."""
    stages.clear()


def _stage_for(network: Network, settings: Settings, make_optimizer: MakeOptimizer) -> Stage:
    """Return the stage for this kind of training, a new one if there is none."""
    key = (
        network.encoder.config.to_json_string(),
        str(network),
        str(network.encoder.device),
        *(settings.weight_decay, settings.epsilon, settings.clip, settings.dropout),
    )  # all that shapes a step but its batch
    if key not in stages:
        copy = deepcopy(network).train()
        products = [name for name, module in copy.named_modules() if isinstance(module, nn.Linear)]
        weights = {
            name: weight
            for name, weight in copy.named_parameters()
            if name.rpartition(".")[0] in products
        }
        on_gpu = next(copy.parameters()).device.type == "cuda"
        precision = torch.bfloat16 if on_gpu else torch.float32
        half = {
            name: weight.detach().to(precision, copy=True).requires_grad_()
            for name, weight in weights.items()
        }
        grads = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        stages[key] = Stage(copy, make_optimizer(copy), settings.clip, half, grads)
        while len(stages) > _MAX_STAGES:
            stages.popitem(last=False)
    stages.move_to_end(key)
    return stages[key]


@dataclass
class Stage:
    """Weights, optimizer and graphs that outlive one training."""

    network: Network
    optimizer: torch.optim.Optimizer
    clip: float
    half: dict[str, Tensor]  # bf16 copies of the weights of matrix products, all made at once
    grads: dict[str, Tensor]  # the gradients of those weights in float32
    buffers: dict[Shape, dict[str, Tensor]] = field(default_factory=dict)
    graphs: dict[Shape, torch.cuda.CUDAGraph] = field(default_factory=dict)

    def start_from(self, network: Network) -> None:
        """Copy the network's weights and reset the optimizer."""
        with torch.no_grad():
            torch._foreach_copy_(list(self.network.parameters()), list(network.parameters()))
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()

    def copy_to(self, network: Network) -> None:
        """Overwrite the network's weights with the trained ones."""
        with torch.no_grad():
            torch._foreach_copy_(list(network.parameters()), list(self.network.parameters()))

    def run(
        self, shape: Shape, arrays: Arrays, steps: int, device: torch.device, seed: int
    ) -> list[float]:
        """Do the steps laid out in the arrays, and return their losses."""
        on_gpu = device.type == "cuda"
        buffers = self._buffers(shape, arrays, device)
        for name, values in arrays.items():
            source = torch.from_numpy(values)
            buffers[name][: len(values)].copy_(source.pin_memory() if on_gpu else source)
        if on_gpu and shape not in self.graphs:
            self._capture(shape, buffers)
        buffers["step"].zero_()
        torch.manual_seed(seed)  # only now, since capturing has drawn from torch's generator
        for _ in range(steps):
            if on_gpu:
                self.graphs[shape].replay()
            else:
                self._step(shape, buffers)  # the same arithmetic, for the tests
        losses: list[float] = buffers["losses"][:steps].tolist()
        return losses

    def _buffers(self, shape: Shape, arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
        if shape not in self.buffers:
            self.buffers[shape] = {
                name: torch.zeros(
                    (_STEPS, *values.shape[1:]), dtype=torch.from_numpy(values).dtype, device=device
                )
                for name, values in arrays.items()
            } | {
                "step": torch.zeros(1, dtype=torch.long, device=device),
                "losses": torch.zeros(_STEPS, device=device),
            }
        return self.buffers[shape]

    def _capture(self, shape: Shape, buffers: dict[str, Tensor]) -> None:
        """Do a step on a side stream, undo it, and record it."""
        before = [parameter.detach().clone() for parameter in self.network.parameters()]
        kept = {
            key: {name: value.clone() for name, value in state.items()}
            for key, state in self.optimizer.state.items()
        }
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                buffers["step"].zero_()
                self._step(shape, buffers)
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        pool = next((earlier.pool() for earlier in self.graphs.values()), None)
        with torch.cuda.graph(graph, pool=pool):
            self._step(shape, buffers)
        with torch.no_grad():
            torch._foreach_copy_(list(self.network.parameters()), before)
            for key, state in self.optimizer.state.items():
                for name, value in state.items():
                    value.copy_(kept[key][name]) if key in kept else value.zero_()
        self.graphs[shape] = graph

    def _step(self, shape: Shape, buffers: dict[str, Tensor]) -> None:
        """Do one step; the host must not look at any value."""
        step = buffers["step"]
        now = {
            name: values.index_select(0, step)[0]
            for name, values in buffers.items()
            if name not in ("step", "losses")
        }
        for group in self.optimizer.param_groups:
            group["lr"].copy_(now["rates"] * group["scale"])
        weights = dict(self.network.named_parameters())
        with torch.no_grad():
            torch._foreach_copy_(list(self.half.values()), [weights[name] for name in self.half])
        loss = self._loss(shape, now)
        self.optimizer.zero_grad(set_to_none=True)
        for copy in self.half.values():
            copy.grad = None
        loss.backward()
        used = {name: copy.grad for name, copy in self.half.items() if copy.grad is not None}
        torch._foreach_copy_([self.grads[name] for name in used], list(used.values()))
        for name in used:
            weights[name].grad = self.grads[name]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.clip, foreach=True)
        self.optimizer.step()
        buffers["losses"].index_copy_(0, step, loss.detach()[None])
        step += 1

    def _loss(self, shape: Shape, now: dict[str, Tensor]) -> Tensor:
        batch = Batch(now["ids"], now["positions"], now["segments"], now["words"], ())
        targets, mixup = now["targets"], None
        if shape.mixup is not None:
            mixup = Mixup(now["partners"], now["weights"], shape.mixup)
            targets = mixup.rows(targets)
        with autocast(batch.ids.device, cache=False):
            scores: Tensor = functional_call(self.network, self.half, (batch, mixup))
        if not shape.length:
            return self.network.word_loss(scores, targets, now.get("word_weights"))
        box = (shape.sentences, shape.length, targets.shape[1])
        return self.network.chain_loss(
            scores.view(box), targets.view(box), now["lengths"], now["present"], shape.complete
        )
