"""An encoder as a masked LM: load it with its pretrained head, train it, measure its loss."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from seqmix.errors import ModelError
from seqmix.starter import load_encoder
from seqmix.tagger.adaptation.checkpoint import Checkpoint
from seqmix.tagger.adaptation.masking import Masked, Rows, Vocabulary, batches, drawn, each_once
from seqmix.tagger.network import Network, attention_inputs, autocast
from seqmix.tagger.on_cpu import use_onednn
from seqmix.tagger.settings import AdaptSettings
from seqmix.tagger.training.determinism import seeded
from seqmix.tagger.training.loop import Progress
from seqmix.tagger.training.schedule import rates


def load_masked_lm(encoder: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return the encoder with the masked-LM head it was pretrained with.

    subtle: transformers draws a head that the files lack at random and reports nothing.
    So the encoder is loaded under two seeds: what differs was drawn.
    """
    sums = []
    for seed in (0, 1):
        with seeded(seed):
            try:
                model, tokenizer = load_encoder(encoder, masked_lm=True)
            except ModelError as error:
                if "AutoModelForMaskedLM" in str(error):
                    raise _headless(encoder, "models of its kind have none") from error
                raise
        sums.append(
            {name: parameter.detach().sum().item() for name, parameter in model.named_parameters()}
        )
    drawn_names = [name for name in sums[0] if sums[0][name] != sums[1][name]]
    if drawn_names:
        raise _headless(encoder, f"its files lack {drawn_names[0]}")
    if tokenizer.mask_token_id is None:
        raise _headless(encoder, "its tokenizer lacks a mask token")
    return model, tokenizer


def _headless(encoder: str, why: str) -> ModelError:
    return ModelError(
        f"the encoder {encoder!r} has no masked-LM head to train with: {why}; "
        "give one as it was pretrained (starter, bert-base-cased, roberta-base) "
        "or a folder that seqmix adapt wrote"
    )


class MaskedLM(nn.Module):
    """A masked LM whose head, with a score per vocabulary entry, sees hidden pieces only."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model
        with seeded(0):  # only for how the encoder reads rows; this head is never used
            reader = Network(model.base_model, 1, "linear", 0.0, torch.Generator())
        self.packs, self.first_position = reader.packs, reader.first_position
        use_onednn(model)
        self._at: Tensor | None = None
        # A hook, since each kind of model names its head differently.
        model.base_model.register_forward_hook(self._select_hidden)

    def forward(self, batch: Masked) -> Tensor:
        """Return the scores of the hidden pieces [n_hidden, n_vocabulary]."""
        self._at = batch.at
        inputs = attention_inputs(batch.positions, batch.segments, self.packs)
        scores: Tensor = self.model(input_ids=batch.ids, **inputs).logits[0]
        return scores

    def loss(self, batch: Masked) -> Tensor:
        """Return the loss in nats, summed over the hidden pieces."""
        with autocast(self.device):
            return nn.functional.cross_entropy(self(batch), batch.truth, reduction="sum")

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def _select_hidden(self, _module: nn.Module, _inputs: Any, outputs: Any) -> Any:
        states = outputs.last_hidden_state.flatten(0, 1)
        outputs.last_hidden_state = states.index_select(0, self._at)[None]  # [1, n_hidden, width]
        return outputs


def train(
    lm: MaskedLM,
    rows: Rows,
    vocabulary: Vocabulary,
    settings: AdaptSettings,
    lr: float,
    rng: np.random.Generator,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> int:
    """Train in place, preparing one epoch at a time, and return the number of steps."""
    device, per_epoch = lm.device, _n_batches(rows, settings.batch_tokens)
    total = settings.steps or settings.epochs * per_epoch
    optimizer = torch.optim.AdamW(
        _groups(lm, settings.weight_decay), lr=lr, eps=settings.epsilon, fused=True
    )

    first = 0 if checkpoint is None else checkpoint.restore(lm, optimizer, rng)

    def stream() -> Iterator[Masked]:
        for _ in range(first // per_epoch, -(-total // per_epoch)):
            if checkpoint is not None:
                checkpoint.start_epoch(rng)
            hidden, order = drawn(rows, settings.share, rng), rng.permutation(len(rows))
            yield from batches(rows, hidden, order, per_epoch, vocabulary, rng, device)

    losses: list[Tensor] = []
    lm.train()
    rest = islice(rates(lr, settings.warmup, total), first, None)
    schedule = zip(rest, islice(stream(), first % per_epoch, None), strict=False)
    for step, (rate, batch) in enumerate(schedule, first):
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = lm.loss(batch) / max(1, len(batch.truth))
        loss.backward()
        nn.utils.clip_grad_norm_(lm.parameters(), settings.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        # Looking at the loss would stall a GPU.
        if device.type == "cpu" or step + 1 == total or step % 50 == 49:
            recent = _mean_loss(losses, step + 1, total, lr)
            losses.clear()
            if progress is not None:
                progress(step + 1, total, recent)
        if checkpoint is not None:
            checkpoint.save_if_due(lm, optimizer, step + 1)
    return total


def pieces_in(rows: Rows, settings: AdaptSettings, steps: int) -> int:
    """Return how many word pieces so many steps of training read; each epoch reads all once."""
    epochs = steps / max(1, _n_batches(rows, settings.batch_tokens))
    return round(epochs * int((rows.segments > 0).sum()))


def _mean_loss(losses: list[Tensor], step: int, total: int, lr: float) -> float:
    """Return the mean of the recent losses; refuse one that is no number any more."""
    mean = torch.stack(losses).mean().item()
    if not np.isfinite(mean):
        raise ModelError(
            f"the loss became {mean} at step {step} of {total}; "
            f"lower the learning rate (now {lr:g})"
        )
    return mean


def held_out_loss(
    lm: MaskedLM, rows: Rows, vocabulary: Vocabulary, settings: AdaptSettings, seed: int
) -> float | None:
    """Return nats per hidden piece, each word hidden once; a seed always hides the same words."""
    if not rows.units.any():
        return None
    lm.eval()
    rng, order = np.random.default_rng(seed), np.arange(len(rows))
    n = _n_batches(rows, settings.batch_tokens)
    losses, pieces = [], 0
    with torch.inference_mode():
        for hidden in each_once(rows, settings.share, rng):
            for batch in batches(rows, hidden, order, n, vocabulary, rng, lm.device):
                losses.append(lm.loss(batch))
                pieces += len(batch.truth)
        return torch.stack(losses).sum().item() / pieces


def _n_batches(rows: Rows, batch_tokens: int) -> int:
    per_batch: int = max(1, batch_tokens // rows.ids.shape[1])
    return -(-len(rows) // per_batch)


def _groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the optimizer's groups: no weight decay on biases and LayerNorm weights."""
    parameters = list(module.parameters())
    return [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
