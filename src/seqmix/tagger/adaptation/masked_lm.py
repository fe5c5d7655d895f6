"""An encoder as a masked LM: loaded with the head it was pretrained with, trained and measured on hidden words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from seqmix.errors import ConfigError, ModelError
from seqmix.starter import load_encoder
from seqmix.tagger.adaptation.masking import Masked, Rows, Vocabulary, batches, drawn, each_once
from seqmix.tagger.network import Network, autocast
from seqmix.tagger.training.loop import Progress, seeded


@dataclass(frozen=True)
class AdaptSettings:
    """How to adapt. The learning rate is the encoder's own when not given: 3e-4 for the starter, 5e-5 for others."""

    epochs: int = 6
    steps: int | None = None  # overrides epochs
    lr: float | None = None
    batch_tokens: int = (
        4096  # pieces a step; the same on every device, so that a result does not depend on it
    )
    share: float = 0.2  # of the words, hidden in each epoch
    whole_words: bool = True  # all pieces of a word are hidden together
    held_out: float = 0.02  # of the sentences, never trained on: the loss is measured on them
    warmup: float = 0.1
    weight_decay: float = 0.01
    epsilon: float = 1e-8
    clip: float = 1.0
    max_pieces: int = 128
    seed: int = 0  # where no generator is given

    def __post_init__(self) -> None:
        least = {"epochs": 1, "steps": 1, "batch_tokens": 1, "max_pieces": 8, "seed": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ConfigError(f"{name} is {value}; it must be at least {bound}")
        if self.lr is not None and not 0 < self.lr < 1:
            raise ConfigError(
                f"lr is {self.lr}; it must lie between 0 and 1 (3e-4 suits the starter, 5e-5 larger encoders)"
            )
        if not 0 < self.share < 1:
            raise ConfigError(
                f"share is {self.share}; it must lie between 0 and 1 (0.2 hides every fifth word)"
            )
        for name in ("held_out", "warmup", "weight_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}; it must be at least 0 and below 1"
                )
        for name in ("epsilon", "clip"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")


def load_masked_lm(encoder: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The encoder with the masked-LM head it was pretrained with.

    subtle: a head that the files lack is drawn at random without a word. What two loads under two seeds disagree on was drawn.
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
    made_up = [name for name in sums[0] if sums[0][name] != sums[1][name]]
    if made_up:
        raise _headless(encoder, f"its files lack {made_up[0]}")
    if tokenizer.mask_token_id is None:
        raise _headless(encoder, "its tokenizer lacks a mask token")
    return model, tokenizer


def _headless(encoder: str, why: str) -> ModelError:
    return ModelError(
        f"the encoder {encoder!r} has no masked-LM head to train with: {why}; "
        "give one as it was pretrained (starter, bert-base-cased, roberta-base) or a folder that seqmix adapt wrote"
    )


class MaskedLM(nn.Module):
    """Scores of hidden pieces only: the head, with its one score for each entry of the vocabulary, sees no other place."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model
        with seeded(
            0
        ):  # asked only how the encoder's rows are laid out; its head is drawn and dropped
            reader = Network(model.base_model, 1, "linear", 0.0, torch.Generator())
        self.packs, self.first_position = reader.packs, reader.first_position
        self._at: Tensor | None = None
        model.base_model.register_forward_hook(
            self._pick
        )  # every kind names its head otherwise; all put it behind the encoder

    def forward(self, batch: Masked) -> Tensor:
        """[n_hidden, n_vocabulary]."""
        self._at = batch.at
        if self.packs:
            mask = (
                batch.segments[:, None, :, None] == batch.segments[:, None, None, :]
            )  # a window attends to itself only
            found = self.model(
                input_ids=batch.ids, attention_mask=mask, position_ids=batch.positions
            )
        else:
            found = self.model(input_ids=batch.ids, attention_mask=(batch.segments > 0).long())
        scores: Tensor = found.logits[0]
        return scores

    def loss(self, batch: Masked) -> Tensor:
        """Nats, summed over the hidden pieces."""
        with autocast(self.device):
            return nn.functional.cross_entropy(self(batch), batch.truth, reduction="sum")

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def _pick(self, _module: nn.Module, _given: Any, found: Any) -> Any:
        found.last_hidden_state = found.last_hidden_state.flatten(0, 1).index_select(0, self._at)[
            None
        ]  # [1, n_hidden, width]
        return found


def train(
    lm: MaskedLM,
    rows: Rows,
    vocabulary: Vocabulary,
    settings: AdaptSettings,
    lr: float,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> int:
    """Train in place; the number of steps. The host prepares an epoch at a time and looks at the loss now and then."""
    device, an_epoch = lm.device, _n_batches(rows, settings.batch_tokens)
    total = settings.steps or settings.epochs * an_epoch
    warm = max(1, round(settings.warmup * total))
    optimizer = torch.optim.AdamW(
        _groups(lm, settings.weight_decay), lr=lr, eps=settings.epsilon, fused=True
    )
    stream = (
        batch
        for _ in range(-(-total // an_epoch))
        for batch in batches(
            rows,
            drawn(rows, settings.share, rng),
            rng.permutation(len(rows)),
            an_epoch,
            vocabulary,
            rng,
            device,
        )
    )
    losses: list[Tensor] = []
    lm.train()
    for step, batch in zip(range(total), stream, strict=False):
        for group in optimizer.param_groups:
            group["lr"] = lr * min((step + 1) / warm, (total - step) / max(1, total - warm))
        loss = lm.loss(batch) / max(1, len(batch.truth))
        loss.backward()
        nn.utils.clip_grad_norm_(lm.parameters(), settings.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        if (
            device.type == "cpu" or step + 1 == total or step % 50 == 49
        ):  # on a GPU, looking at the loss would stall it
            recent = torch.stack(losses).mean().item()
            losses.clear()
            if not np.isfinite(recent):
                raise ModelError(
                    f"the loss became {recent} at step {step + 1} of {total}; lower the learning rate (now {lr:g})"
                )
            if progress is not None:
                progress(step + 1, total, recent)
    return total


def held_out_loss(
    lm: MaskedLM, rows: Rows, vocabulary: Vocabulary, settings: AdaptSettings, seed: int
) -> float | None:
    """Nats a hidden piece, each word hidden once; the same seed hides the same words the same way, before the training and after it."""
    if not rows.units.any():
        return None
    lm.eval()
    rng, order, n = (
        np.random.default_rng(seed),
        np.arange(len(rows)),
        _n_batches(rows, settings.batch_tokens),
    )
    with torch.inference_mode():
        each = [
            (lm.loss(batch), len(batch.truth))
            for hidden in each_once(rows, settings.share, rng)
            for batch in batches(rows, hidden, order, n, vocabulary, rng, lm.device)
        ]
        return torch.stack([loss for loss, _ in each]).sum().item() / sum(
            count for _, count in each
        )


def _n_batches(rows: Rows, batch_tokens: int) -> int:
    per_batch: int = max(1, batch_tokens // rows.ids.shape[1])
    return -(-len(rows) // per_batch)


def _groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """As in training: no weight decay on biases and LayerNorm weights."""
    parameters = list(module.parameters())
    return [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
