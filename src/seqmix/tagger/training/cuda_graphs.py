"""The same training on a GPU that never waits for the host: a step is captured once as a CUDA graph and replayed.

A step of a small encoder is hundreds of kernels of a few microseconds; launched one by one they leave the GPU idle nine tenths of the
time. So batches get one fixed shape (rows of `width` pieces, several sentences a row), the batches of many steps are laid on the device
at once, and a counter on the device says which is next: the host only says "again". A stage (weights, optimizer, graphs) is kept
for the next training of the same shape, since a loop trains dozens of times.
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

from seqmix.tagger.network import Mixup, Network, autocast
from seqmix.tagger.pieces import Batch, Window, pack

_STEPS = 64  # whose batches lie on the device at a time
_KEPT = 4  # stages
Stretch = tuple[int, list[float]]  # the number of its first step, from 0, and the loss of each
_stages: OrderedDict[tuple[Any, ...], _Stage] = OrderedDict()


@dataclass(frozen=True)
class Job:
    """What a step needs beside the weights."""

    rate: float
    chosen: Sequence[int]
    mixup: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None = (
        None  # partners and weights by word
    )


@dataclass(frozen=True)
class Shape:
    """What a graph is captured for."""

    rows: int
    width: int
    sentences: int
    length: int  # words of the longest sentence, for a CRF; 0 for a linear head
    mixup: bool
    complete: bool  # no word without label, for a CRF


def replay(
    network: Network,
    windows: Sequence[Sequence[Window]],
    rows: Sequence[np.ndarray[Any, Any]],
    jobs: Sequence[Job],
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer],
    key: tuple[Any, ...],
    clip: float,
    batch_size: int,
    width: int,
    seed: int,
) -> Iterator[Stretch]:
    """Train in place, at the very end: up to then the network is as it was. `key` names all that shapes a step but its batch."""
    device = next(network.parameters()).device
    stage = _stage(network, make_optimizer, key, clip)
    stage.take(network)
    crf = network.chain is not None
    length = -(-max(len(own) for own in rows) // 16) * 16 if crf else 0
    complete = crf and not any(np.isnan(own).any() for own in rows)
    for done in range(0, len(jobs), _STEPS):
        stretch = jobs[done : done + _STEPS]
        packed = [
            pack([windows[i] for i in job.chosen], network.first_position, width) for job in stretch
        ]
        most = max(len(batch.ids) for batch in packed)
        shape = Shape(
            -(-most // 4) * 4, width, batch_size, length, stretch[0].mixup is not None, complete
        )
        laid = lay_out(
            shape,
            stretch,
            packed,
            [[rows[i] for i in job.chosen] for job in stretch],
            network.first_position,
        )
        yield done, stage.run(shape, laid, len(stretch), device, seed + done)
    stage.give(network)


def forget_stages() -> None:
    """Let go of the memory that stages hold."""
    _stages.clear()


def lay_out(
    shape: Shape,
    jobs: Sequence[Job],
    packed: Sequence[Batch],
    rows: Sequence[Sequence[np.ndarray[Any, Any]]],
    first_position: int,
) -> dict[str, np.ndarray[Any, Any]]:
    """Batches of one shape, one a step: pieces in rows, and the targets where the head looks for them."""
    steps, n_tags = len(jobs), rows[0][0].shape[1]
    places = shape.rows * shape.width
    spots = shape.sentences * shape.length or places
    laid: dict[str, np.ndarray[Any, Any]] = {
        "ids": np.zeros((steps, shape.rows, shape.width), dtype=np.int64),
        "positions": np.full((steps, shape.rows, shape.width), first_position),
        "segments": np.zeros((steps, shape.rows, shape.width), dtype=np.int64),
        "targets": np.full((steps, spots, n_tags), np.nan, dtype=np.float32),
        "words": np.tile(
            np.arange(places) if not shape.length else np.zeros(spots, dtype=np.int64), (steps, 1)
        ),
        "ends": np.ones((steps, shape.sentences), dtype=np.int64),
        "there": np.zeros((steps, shape.sentences), dtype=np.float32),
        "rates": np.array([job.rate for job in jobs], dtype=np.float32),
    }
    if shape.mixup:
        laid["partners"] = np.tile(np.arange(places), (steps, 1))
        laid["weights"] = np.ones((steps, places), dtype=np.float32)
    for step, (job, batch, own) in enumerate(zip(jobs, packed, rows, strict=True)):
        used = len(batch.ids)
        for name in ("ids", "positions", "segments"):
            laid[name][step, :used] = getattr(batch, name).numpy()
        words = batch.words.numpy()
        laid["ends"][step, : len(own)] = batch.lengths
        laid["there"][step, : len(own)] = 1
        spot = _spots(batch.lengths, shape.length) if shape.length else words
        laid["targets"][step, spot] = np.concatenate(own)
        if shape.length:
            laid["words"][step, spot] = words
        if job.mixup is not None:
            partners, weights = job.mixup
            laid["partners"][step, words] = words[partners]
            laid["weights"][step, words] = weights
    return laid


def _spots(lengths: Sequence[int], longest: int) -> np.ndarray[Any, Any]:
    """Where the words of each sentence stand when every sentence has `longest` places."""
    return np.concatenate([np.arange(length) + s * longest for s, length in enumerate(lengths)])


@dataclass
class _Stage:
    """Weights, optimizer and graphs that outlive one training."""

    network: Network
    optimizer: torch.optim.Optimizer
    clip: float
    half: dict[
        str, Tensor
    ]  # bf16 copies of the weights that matrix products read, made for all at once instead of one by one
    grads: dict[str, Tensor]  # their gradients in float32
    buffers: dict[Shape, dict[str, Tensor]] = field(default_factory=dict)
    graphs: dict[Shape, torch.cuda.CUDAGraph] = field(default_factory=dict)

    def take(self, network: Network) -> None:
        """Start from these weights with an empty optimizer."""
        with torch.no_grad():
            torch._foreach_copy_(list(self.network.parameters()), list(network.parameters()))
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()

    def give(self, network: Network) -> None:
        """Copy what was learned."""
        with torch.no_grad():
            torch._foreach_copy_(list(network.parameters()), list(self.network.parameters()))

    def run(
        self,
        shape: Shape,
        laid: dict[str, np.ndarray[Any, Any]],
        steps: int,
        device: torch.device,
        seed: int,
    ) -> list[float]:
        """All steps laid out; their losses."""
        buffers = self._buffers(shape, laid, device)
        for name, values in laid.items():
            buffers[name][: len(values)].copy_(
                torch.from_numpy(values).pin_memory()
                if device.type == "cuda"
                else torch.from_numpy(values)
            )
        if device.type == "cuda" and shape not in self.graphs:
            self._capture(shape, buffers)
        buffers["step"].zero_()
        torch.manual_seed(
            seed
        )  # subtle: only now, since trying a step out has drawn from torch's generator
        for _ in range(steps):
            if device.type == "cuda":
                self.graphs[shape].replay()
            else:
                self._step(shape, buffers)  # the same arithmetic, for the tests
        losses: list[float] = buffers["losses"][:steps].tolist()
        return losses

    def _buffers(
        self, shape: Shape, laid: dict[str, np.ndarray[Any, Any]], device: torch.device
    ) -> dict[str, Tensor]:
        if shape not in self.buffers:
            made = {
                name: torch.zeros(
                    (_STEPS, *values.shape[1:]), dtype=torch.from_numpy(values).dtype, device=device
                )
                for name, values in laid.items()
            }
            made["step"] = torch.zeros(1, dtype=torch.long, device=device)
            made["losses"] = torch.zeros(_STEPS, device=device)
            self.buffers[shape] = made
        return self.buffers[shape]

    def _capture(self, shape: Shape, buffers: dict[str, Tensor]) -> None:
        """Try a step out on the side, undo it, and record it."""
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
        with torch.cuda.graph(
            graph, pool=next((other.pool() for other in self.graphs.values()), None)
        ):
            self._step(shape, buffers)
        with torch.no_grad():
            torch._foreach_copy_(list(self.network.parameters()), before)
            for key, state in self.optimizer.state.items():
                for name, value in state.items():
                    value.copy_(kept[key][name]) if key in kept else value.zero_()
        self.graphs[shape] = graph

    def _step(self, shape: Shape, buffers: dict[str, Tensor]) -> None:
        step = buffers["step"]
        now = {
            name: values.index_select(0, step)[0]
            for name, values in buffers.items()
            if name not in ("step", "losses")
        }
        for group in self.optimizer.param_groups:
            group["lr"].copy_(now["rates"] * group["scale"])
        batch = Batch(now["ids"], now["positions"], now["segments"], now["words"], ())
        targets, mixup = now["targets"], None
        if shape.mixup:
            mixup = Mixup(now["partners"], now["weights"])
            targets = mixup.rows(targets)
        weights = dict(self.network.named_parameters())
        with torch.no_grad():
            torch._foreach_copy_(list(self.half.values()), [weights[name] for name in self.half])
        with autocast(step.device, cache=False):
            scores = functional_call(self.network, self.half, (batch, mixup))
        if shape.length:
            box = (shape.sentences, shape.length, targets.shape[1])
            loss = self.network.chain_loss(
                scores.view(box), targets.view(box), now["ends"], now["there"], shape.complete
            )
        else:
            loss = self.network.loss(scores, targets, ())
        self.optimizer.zero_grad(set_to_none=True)
        for copy in self.half.values():
            copy.grad = None
        loss.backward()
        used = {
            name: copy.grad for name, copy in self.half.items() if copy.grad is not None
        }  # a pooler is not
        torch._foreach_copy_([self.grads[name] for name in used], list(used.values()))
        for name in used:
            weights[name].grad = self.grads[name]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.clip, foreach=True)
        self.optimizer.step()
        buffers["losses"].index_copy_(0, step, loss.detach()[None])
        step += 1


def _stage(
    network: Network,
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer],
    key: tuple[Any, ...],
    clip: float,
) -> _Stage:
    """The stage for this kind of training, made when it is not there; the oldest give way."""
    if key not in _stages:
        copy = deepcopy(network).train()
        products = [name for name, module in copy.named_modules() if isinstance(module, nn.Linear)]
        weights = {
            name: weight
            for name, weight in copy.named_parameters()
            if name.rpartition(".")[0] in products
        }
        precision = (
            torch.bfloat16 if next(copy.parameters()).device.type == "cuda" else torch.float32
        )
        half = {
            name: weight.detach().to(precision, copy=True).requires_grad_()
            for name, weight in weights.items()
        }
        grads = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        _stages[key] = _Stage(copy, make_optimizer(copy), clip, half, grads)
        while len(_stages) > _KEPT:
            _stages.popitem(last=False)
    _stages.move_to_end(key)
    return _stages[key]
