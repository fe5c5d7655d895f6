"""The training loop: AdamW over a planned sequence of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import nn

from seqmix.errors import ModelError
from seqmix.tagger.batches import pack, spread
from seqmix.tagger.network import Mixup, Network, autocast
from seqmix.tagger.settings import Settings
from seqmix.tagger.training.cuda_graphs import Losses, forget_stages, replay
from seqmix.tagger.training.determinism import repeatable, seeded
from seqmix.tagger.training.memory import BatchParts, ran_out, release, warn_once
from seqmix.tagger.training.parameters import only_seen_embeddings, parameter_groups
from seqmix.tagger.training.schedule import Step, TrainingSet, plan_steps

_NAMED = 32  # sentences of a batch that a message names
Progress = Callable[[int, int, float], None]  # steps done, steps in all, recent loss


def train(
    network: Network,
    data: TrainingSet,
    settings: Settings,
    lr: float,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> int:
    """Train the network in place and return how many word pieces the steps read.

    A loss or weight that is not a number is a `ModelError`.
    """
    seed = int(rng.integers(2**62))
    steps = plan_steps(data, settings, lr, seed, rng)
    device = next(network.parameters()).device
    run = runner_for(network, settings)
    with repeatable(device, network.packs), seeded(seed):
        for first, losses in run(network, data, steps, settings, lr, seed):
            bad = next((i for i, loss in enumerate(losses) if not np.isfinite(loss)), None)
            if bad is not None:
                raise _diverged(f"the loss became {losses[bad]}", first + bad, steps, data.ids, lr)
            if progress is not None:
                progress(first + len(losses), len(steps), float(np.mean(losses)))
    finite = torch.stack([parameter.isfinite().all() for parameter in network.parameters()])
    if not all(finite.tolist()):
        raise _diverged("some weights became NaN or infinite", len(steps) - 1, steps, data.ids, lr)
    sizes = [sum(len(window.ids) for window in windows) for windows in data.windows]
    return sum(sizes[i] for step in steps for i in step.chosen)


def _diverged(
    what: str, step: int, steps: Sequence[Step], ids: Sequence[str], lr: float
) -> ModelError:
    """Return the error of a training that is lost, with the batch at which that was seen."""
    chosen = steps[step].chosen
    batch = ", ".join(ids[i] for i in chosen[:_NAMED]) if ids else ""
    more = f" and {len(chosen) - _NAMED} more" if len(chosen) > _NAMED else ""
    named = f", whose sentences are {batch}{more}" if batch else ""
    return ModelError(
        f"{what} at step {step + 1} of {len(steps)}{named}; "
        f"lower the learning rate (now {lr:g}), or look at these sentences"
    )


def runner_for(network: Network, settings: Settings) -> Callable[..., Iterator[Losses]]:
    """Return how the steps are done: replayed on a GPU where the encoder and head allow it.

    The encoder must read packed rows, and mixup cannot cross the boxes of a CRF.
    """
    on_gpu = next(network.parameters()).device.type == "cuda"
    crosses_boxes = settings.mixup and network.chain is not None
    return replay_steps if on_gpu and network.packs and not crosses_boxes else run_steps


def run_steps(
    network: Network,
    data: TrainingSet,
    steps: Sequence[Step],
    settings: Settings,
    lr: float,
    seed: int,
) -> Iterator[Losses]:
    """Do step after step, each batch in its own shape."""
    device = next(network.parameters()).device
    with only_seen_embeddings(network, data.windows, settings.weight_decay) as (row_of, step_done):
        network.train()
        optimizer = torch.optim.AdamW(
            parameter_groups(network, settings.weight_decay),
            lr=lr,
            eps=settings.epsilon,
            fused=True,
        )
        clear_gradients = partial(optimizer.zero_grad, set_to_none=True)
        losses: list[torch.Tensor] = []
        parts = BatchParts(settings.batch_size, data.ids)
        for number, step in enumerate(steps, 1):
            for group in optimizer.param_groups:
                group["lr"] = step.rate * group["scale"]
            backward = partial(_backward, network, data, step, row_of)
            losses.append(parts.add_gradients(step.chosen, backward, clear_gradients))
            nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
            optimizer.step()
            clear_gradients()
            step_done(step.rate)
            # Looking at the loss would stall a GPU.
            if device.type == "cpu" or len(losses) == 50 or number == len(steps):
                yield number - len(losses), torch.stack(losses).tolist()
                losses.clear()


def _backward(
    network: Network, data: TrainingSet, step: Step, row_of: torch.Tensor, part: Sequence[int]
) -> torch.Tensor:
    """Add the gradients of a part of a batch, and return its share of the batch's loss."""
    device = next(network.parameters()).device
    mixup = _mixup_of(step, part, device)
    windows = [data.windows[i] for i in part]
    batch = (
        pack(windows, network.first_position)
        if network.packs
        else spread(windows, torch.device("cpu"))[0]
    )
    batch.ids.copy_(row_of[batch.ids])
    batch = batch.to(device)
    rows = torch.from_numpy(np.concatenate([data.rows[i] for i in part]))
    target = rows.to(device, non_blocking=True)
    if mixup is not None:
        target = mixup.rows(target)
    with autocast(device):
        scores = network(batch, mixup)
    share = data.labeled_words(part) / data.labeled_words(step.chosen)
    weights = None if data.weights is None else torch.from_numpy(data.weights[list(part)])
    weights = None if weights is None else weights.to(device)
    loss = network.loss(scores, target, batch.lengths, weights) * share
    loss.backward()
    return loss.detach()


def _mixup_of(step: Step, part: Sequence[int], device: torch.device) -> Mixup | None:
    if step.mixup is None:
        return None
    if len(part) < len(step.chosen):
        raise ModelError(
            f"a batch of {len(step.chosen)} does not fit in memory, and mixup pairs its sentences; "
            "lower training.batch_size"
        )
    pairs = step.mixup
    partners, weights = torch.from_numpy(pairs.partners), torch.from_numpy(pairs.weights)
    return Mixup(partners.to(device), weights.to(device), pairs.layer)


def replay_steps(
    network: Network,
    data: TrainingSet,
    steps: Sequence[Step],
    settings: Settings,
    lr: float,
    seed: int,
) -> Iterator[Losses]:
    """Do the same steps as a replayed CUDA graph.

    Launching a small step takes a GPU ten times as long as doing it.
    Fixed shapes need more memory; where it runs out, training starts again step by step.
    """

    def make_optimizer(copy: nn.Module) -> torch.optim.Optimizer:
        device = next(copy.parameters()).device
        groups = [
            {**group, "lr": torch.tensor(lr, device=device)}
            for group in parameter_groups(copy, settings.weight_decay)
        ]
        return torch.optim.AdamW(
            groups, eps=settings.epsilon, fused=True, capturable=device.type == "cuda"
        )

    try:
        yield from replay(network, data, steps, settings, make_optimizer, seed)
        return
    except Exception as error:
        if not ran_out(error):
            raise
    forget_stages()
    release()
    warn_once(
        "memory ran out: training step by step instead of replaying steps on the GPU, "
        "which is slower"
    )
    torch.manual_seed(seed)
    yield from run_steps(network, data, steps, settings, lr, seed)
