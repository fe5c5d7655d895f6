"""The one training loop: AdamW, linear warm-up and decay over the true number of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import nn

from seqmix.errors import ConfigError, ModelError
from seqmix.tagger.network import Mixup, Network, autocast
from seqmix.tagger.pieces import Window, pack, spread
from seqmix.tagger.settings import Settings
from seqmix.tagger.training.batch_order import draw_batches
from seqmix.tagger.training.cuda_graphs import Job, Stretch, forget_stages, replay
from seqmix.tagger.training.determinism import repeatable
from seqmix.tagger.training.memory import Room, ran_out, release, say_once
from seqmix.tagger.training.processes import ALONE, Processes, labeled

_CHAIN_SCALE = 100.0  # the CRF's learning rate over the encoder's: 3e-4 would move a transition by 0.02 in 70 steps
_NAMED = 32  # sentences of a batch that a message names
Progress = Callable[[int, int, float], None]  # steps done, steps in all, loss so far


def train(
    network: Network,
    windows: Sequence[Sequence[Window]],
    rows: Sequence[np.ndarray[Any, Any]],
    settings: Settings,
    lr: float,
    rng: np.random.Generator,
    progress: Progress | None = None,
    processes: Processes = ALONE,
    names: Sequence[str] = (),
) -> None:
    """Train in place on sentences given as windows with their tag rows [n_words, n_tags]; with `processes`, all of them call this alike.

    `names` are the sentences' ids, for messages.
    """
    if settings.mixup and processes.count > 1:
        raise ConfigError(
            f"mixup is {settings.mixup} and there are {processes.count} processes; it pairs the sentences of a batch, "
            "of which each process has a part: train in one process, or without mixup"
        )
    if settings.smoothing:
        rows = [
            (1 - settings.smoothing) * own + settings.smoothing / own.shape[1] for own in rows
        ]  # a row without label stays NaN
    total = settings.total_steps(len(windows))
    warm = max(1, round(settings.warmup * total))
    seed = int(rng.integers(2**62))
    rates = (
        lr * min((step + 1) / warm, (total - step) / max(1, total - warm)) for step in range(total)
    )
    jobs = [
        Job(
            rate,
            chosen,
            _mixup([len(rows[i]) for i in chosen], settings.mixup, rng) if settings.mixup else None,
        )
        for rate, chosen in zip(
            rates, draw_batches(windows, settings.batch_size, total, seed), strict=True
        )
    ]
    if processes.count > 1:
        processes.check_same(_fingerprint(windows, rows, seed))
    device = next(network.parameters()).device
    with (
        repeatable(device, network.packs),
        seeded(seed + processes.index),
    ):  # each process drops out its own
        for first, losses in _work(network, settings, processes)(
            network, windows, rows, jobs, settings, lr, seed, names
        ):
            wrong = next((i for i, loss in enumerate(losses) if not np.isfinite(loss)), None)
            if wrong is not None:
                raise _lost(f"the loss became {losses[wrong]}", first + wrong, jobs, names, lr)
            if progress is not None:
                progress(first + len(losses), total, float(np.mean(losses)))
    if not all(
        torch.stack([parameter.isfinite().all() for parameter in network.parameters()]).tolist()
    ):
        raise _lost("the weights became no numbers", total - 1, jobs, names, lr)


def _lost(what: str, step: int, jobs: Sequence[Job], names: Sequence[str], lr: float) -> ModelError:
    """A training that cannot be saved, with the batch at which that was seen."""
    batch = ", ".join(names[i] for i in jobs[step].chosen[:_NAMED]) if names else ""
    more = len(jobs[step].chosen) - _NAMED
    named = (
        f", whose sentences are {batch}" + (f" and {more} more" if more > 0 else "")
        if batch
        else ""
    )
    return ModelError(
        f"{what} at step {step + 1} of {len(jobs)}{named}; lower the learning rate (now {lr:g}), or look at these sentences"
    )


def _fingerprint(
    windows: Sequence[Sequence[Window]], rows: Sequence[np.ndarray[Any, Any]], seed: int
) -> int:
    """A number that tells data and seeds apart."""
    number = crc32(str((seed, len(windows))).encode())
    for own, target in zip(windows, rows, strict=True):
        for window in own:
            number = crc32(window.ids.tobytes(), number)
        number = crc32(target.tobytes(), number)
    return number


def _work(
    network: Network, settings: Settings, processes: Processes
) -> Callable[..., Iterator[Stretch]]:
    """How the steps are done: on a GPU replayed, unless the encoder cannot read packed rows or mixup would have to cross a CRF's boxes.

    Several processes meet in every step, which a replayed one does not stop for.
    """
    if processes.count > 1:
        return partial(_one_by_one, processes=processes)
    on_gpu = next(network.parameters()).device.type == "cuda"
    return (
        _replayed
        if on_gpu and network.packs and not (settings.mixup and network.chain is not None)
        else _one_by_one
    )


def _one_by_one(
    network: Network,
    windows: Sequence[Sequence[Window]],
    rows: Sequence[np.ndarray[Any, Any]],
    jobs: Sequence[Job],
    settings: Settings,
    lr: float,
    seed: int,
    names: Sequence[str] = (),
    processes: Processes = ALONE,
) -> Iterator[Stretch]:
    """Step after step, each batch in its own shape."""
    device = next(network.parameters()).device
    with _only_seen_embeddings(network, windows, settings.weight_decay) as (remap, step_done):
        network.train()
        optimizer = torch.optim.AdamW(
            _groups(network, settings.weight_decay), lr=lr, eps=settings.epsilon, fused=True
        )
        losses: list[torch.Tensor] = []
        room = Room(settings.batch_size, names)
        for step, job in enumerate(jobs):
            for group in optimizer.param_groups:
                group["lr"] = job.rate * group["scale"]
            own, weight = processes.share(job.chosen, rows)

            def backward(
                part: Sequence[int],
                job: Job = job,
                own: Sequence[int] = own,
                weight: float = weight,
            ) -> torch.Tensor:
                share = weight * (labeled(part, rows) / labeled(own, rows))
                return _backward(
                    network, windows, rows, part, share, _mixup_of(job, part, device), remap
                )

            loss = room.add_up(own, backward, partial(optimizer.zero_grad, set_to_none=True))
            loss = processes.add_up(network.parameters(), loss)
            nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step_done(job.rate)
            losses.append(loss)
            if (
                device.type == "cpu" or len(losses) == 50 or step + 1 == len(jobs)
            ):  # on a GPU, looking at the loss would stall it
                yield step + 1 - len(losses), torch.stack(losses).tolist()
                losses.clear()


def _backward(
    network: Network,
    windows: Sequence[Sequence[Window]],
    rows: Sequence[np.ndarray[Any, Any]],
    chosen: Sequence[int],
    weight: float,
    mixup: Mixup | None,
    remap: torch.Tensor,
) -> torch.Tensor:
    """Add the gradients of some sentences to those there are; their loss."""
    device = next(network.parameters()).device
    own = [windows[i] for i in chosen]
    batch = (
        pack(own, network.first_position) if network.packs else spread(own, torch.device("cpu"))[0]
    )
    batch.ids.copy_(remap[batch.ids])
    batch = batch.to(device)
    target = torch.from_numpy(np.concatenate([rows[i] for i in chosen])).to(
        device, non_blocking=True
    )
    if mixup is not None:
        target = mixup.rows(target)
    with autocast(device):
        scores = network(batch, mixup)
    loss = network.loss(scores, target, batch.lengths) * weight
    loss.backward()
    return loss.detach()


def _mixup_of(job: Job, part: Sequence[int], device: torch.device) -> Mixup | None:
    if job.mixup is None:
        return None
    if len(part) < len(job.chosen):
        raise ModelError(
            f"memory does not hold a batch of {len(job.chosen)}, and mixup pairs its sentences; lower training.batch_size"
        )
    return Mixup(*(torch.from_numpy(values).to(device) for values in job.mixup))


def _replayed(
    network: Network,
    windows: Sequence[Sequence[Window]],
    rows: Sequence[np.ndarray[Any, Any]],
    jobs: Sequence[Job],
    settings: Settings,
    lr: float,
    seed: int,
    names: Sequence[str] = (),
) -> Iterator[Stretch]:
    """The same on a GPU, where launching a small step takes ten times as long as doing it: see `graphs`.

    Fixed shapes need more memory. Where it runs out the training begins again step by step: the network has not been touched yet.
    """

    def optimizer(own: nn.Module) -> torch.optim.Optimizer:
        device = next(own.parameters()).device
        groups = [
            {**group, "lr": torch.tensor(lr, device=device)}
            for group in _groups(own, settings.weight_decay)
        ]
        return torch.optim.AdamW(
            groups, eps=settings.epsilon, fused=True, capturable=device.type == "cuda"
        )

    longest = max(len(window.ids) for own in windows for window in own)
    width = next((w for w in (32, 64, 128) if longest <= w), longest)
    key = (
        network.encoder.config.to_json_string(), str(network), str(network.encoder.device),
        settings.weight_decay, settings.epsilon, settings.clip, settings.dropout,
    )  # fmt: skip
    try:
        yield from replay(
            network,
            windows,
            rows,
            jobs,
            optimizer,
            key,
            settings.clip,
            settings.batch_size,
            width,
            seed,
        )
        return
    except Exception as error:
        if not ran_out(error):
            raise
    forget_stages()
    release()
    say_once(
        "memory ran out: training step by step instead of replaying steps on the GPU, which is slower"
    )
    torch.manual_seed(seed)
    yield from _one_by_one(network, windows, rows, jobs, settings, lr, seed, names)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Torch's own randomness (dropout) from a seed of the run's, and the outside left as it was."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def _mixup(
    lengths: Sequence[int], alpha: float, rng: np.random.Generator
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Each sentence with another of its batch, word by word (the shorter one repeats); one λ ≥ ½ a sentence, so that it stays itself."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    partners, weights = [], []
    for own, other in enumerate(rng.permutation(len(lengths))):
        weight = rng.beta(alpha, alpha)
        partners.append(starts[other] + np.arange(lengths[own]) % lengths[other])
        weights.append(np.full(lengths[own], max(weight, 1 - weight), dtype=np.float32))
    return np.concatenate(partners), np.concatenate(weights)


def _groups(network: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """No weight decay on biases and LayerNorm weights; the CRF's few weights start from nothing and learn faster."""
    decay: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    chain: list[nn.Parameter] = []
    for name, parameter in network.named_parameters():
        if name.startswith("chain."):
            chain.append(parameter)
        else:
            (
                plain
                if parameter.dim() == 1 or "LayerNorm" in name or "layer_norm" in name
                else decay
            ).append(parameter)
    groups = ((decay, weight_decay, 1.0), (plain, 0.0, 1.0), (chain, 0.0, _CHAIN_SCALE))
    return [
        {"params": own, "weight_decay": rate, "scale": scale} for own, rate, scale in groups if own
    ]


@contextmanager
def _only_seen_embeddings(
    network: Network, windows: Sequence[Sequence[Window]], weight_decay: float
) -> Iterator[tuple[torch.Tensor, Callable[[float], None]]]:
    """Train only the rows of the embedding matrix that the data uses; half of a small encoder's weights are rows that never occur.

    subtle: this changes nothing. A row without gradient moves under AdamW by weight decay alone, and the product of those decays is
    applied to all unseen rows at the end. Yields the map from piece id to row and a function to call with each step's rate.
    """
    table = network.encoder.get_input_embeddings()
    full = table.weight
    seen = np.unique(
        np.concatenate(
            [[table.padding_idx or 0], *(window.ids for own in windows for window in own)]
        )
    )
    remap = torch.zeros(len(full), dtype=torch.long)
    remap[torch.from_numpy(seen)] = torch.arange(len(seen))
    index = torch.from_numpy(seen).to(full.device)
    shrink, padding = 1.0, table.padding_idx

    def step_done(rate: float) -> None:
        nonlocal shrink
        shrink *= 1 - rate * weight_decay

    table.weight = nn.Parameter(full.detach()[index].clone())
    table.padding_idx = int(remap[padding]) if padding is not None else None
    try:
        yield remap, step_done
    finally:
        with torch.no_grad():
            full.mul_(shrink)
            full[index] = table.weight
        table.weight, table.padding_idx = full, padding
