"""The network: an encoder, dropout, and a linear or CRF head that scores every word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from seqmix.tagger.batches import Batch
from seqmix.tagger.crf import Chain, log_partition, log_partition_by_halves, target_score

_PLACES = 2**17  # read at once when predicting: twice what a batch of sentences has on a GPU
# Up to this many tags a GPU sums a CRF by halves: the arithmetic grows with their third power.
_FEW_TAGS = 32
# Encoders that can read packed rows, and whether their positions start behind the padding id.
_PACKS = {
    "bert": False,
    "distilbert": False,
    "electra": False,
    "roberta": True,
    "xlm-roberta": True,
    "camembert": True,
}


@dataclass(frozen=True)
class Mixup:
    """Mixup inside a batch: the partner of each word, and the weight of the word itself."""

    partners: Tensor  # [n_words] indices of words of the same batch
    weights: Tensor  # [n_words]

    def rows(self, target: Tensor) -> Tensor:
        """Return the tag rows [n_words, n_tags], mixed as the words are."""
        return self.weights[:, None] * target + (1 - self.weights[:, None]) * target[self.partners]


def autocast(device: torch.device, cache: bool = True) -> Any:
    """Compute in bf16 over float32 weights on a GPU, and in float32 on a CPU.

    Some virtual CPUs advertise AMX, lack it, and die of an illegal instruction in bf16 products.
    """
    if device.type != "cuda":
        return nullcontext()
    return torch.autocast("cuda", torch.bfloat16, cache_enabled=cache)


class Network(nn.Module):
    """Scores of each tag for each word; with a CRF head also scores of neighbors."""

    def __init__(
        self,
        encoder: PreTrainedModel,
        n_tags: int,
        head: str,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(encoder.config.hidden_size, n_tags)
        nn.init.normal_(self.classifier.weight, std=0.02, generator=generator)
        nn.init.zeros_(self.classifier.bias)
        self.chain = _ChainParameters(n_tags) if head == "crf" else None

    @property
    def packs(self) -> bool:
        """Whether the encoder can read several windows in one row."""
        return self.encoder.config.model_type in _PACKS

    @property
    def first_position(self) -> int:
        """The number of the first position: RoBERTa counts from behind its padding id."""
        if _PACKS.get(self.encoder.config.model_type):
            return int(self.encoder.config.pad_token_id) + 1
        return 0

    def hidden(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        """Return the last hidden state of each word's first piece [n_words, width]."""
        if self.training or batch.ids.numel() <= _PLACES:
            return self._hidden(batch, mixup)
        return torch.cat(list(self._in_parts(batch, self._hidden)))[_order(batch)]

    def _in_parts(self, batch: Batch, reduce: Callable[[Batch], Tensor]) -> Iterator[Tensor]:
        """Yield results for some rows at a time: a very long sentence does not fit into memory.

        This waits for the device, which an ordinary batch must not.
        """
        width = batch.ids.shape[1]
        rows = max(1, _PLACES // width)
        places = batch.words[torch.argsort(batch.words)]
        for first in range(0, len(batch.ids), rows):
            ids, positions, segments = (
                t[first : first + rows] for t in (batch.ids, batch.positions, batch.segments)
            )
            edges = torch.tensor([first * width, (first + len(ids)) * width], device=places.device)
            start, end = torch.searchsorted(places, edges).tolist()
            yield reduce(
                Batch(ids, positions, segments, places[start:end] - first * width, (end - start,))
            )

    def _hidden(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        inputs = attention_inputs(batch.positions, batch.segments, self.packs)
        if mixup is None:
            inputs["input_ids"] = batch.ids
        else:
            inputs["inputs_embeds"] = self._mixed(batch, mixup)
        states: Tensor = self.encoder(**inputs).last_hidden_state
        return states.flatten(0, 1).index_select(0, batch.words)

    def _mixed(self, batch: Batch, mixup: Mixup) -> Tensor:
        """Return input embeddings with each word's first piece moved towards its partner's."""
        embedded: Tensor = self.encoder.get_input_embeddings()(batch.ids)
        flat = embedded.flatten(0, 1)  # [n_rows * width, hidden]
        words, partners = flat[batch.words], flat[batch.words[mixup.partners]]
        weights = mixup.weights[:, None]
        mixed = weights * words + (1 - weights) * partners
        return flat.index_copy(0, batch.words, mixed).view_as(embedded)

    def forward(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        """Return the emission scores [n_words, n_tags] in float32."""
        if not self.training and batch.ids.numel() > _PLACES:
            return torch.cat(list(self._in_parts(batch, self._scores)))[_order(batch)]
        return self._scores(batch, mixup)

    def _scores(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        scores: Tensor = self.classifier(self.dropout(self._hidden(batch, mixup)))
        return scores.float()

    def loss(self, scores: Tensor, rows: Tensor, lengths: tuple[int, ...]) -> Tensor:
        """Return the mean over labeled words of cross-entropy or the CRF's negative log-likelihood.

        Rows of NaN are missing.
        """
        labeled = ~torch.isnan(rows[:, 0])
        if self.chain is None:
            q = torch.nan_to_num(rows)
            return -(q * torch.log_softmax(scores, dim=1)).sum() / labeled.sum().clamp(min=1)
        ends = torch.tensor(lengths, device=scores.device)
        gap = self._gap(padded(scores, lengths), padded(rows, lengths), ends)
        return gap.sum() / labeled.sum().clamp(min=1)

    def chain_loss(
        self, emissions: Tensor, rows: Tensor, ends: Tensor, present: Tensor, complete: bool
    ) -> Tensor:
        """Return the CRF's loss of a box [n_sentences, longest, n_tags], without asking the host.

        Only sentences that are `present` count.
        """
        labeled = (~torch.isnan(rows[:, :, 0])).sum().clamp(min=1)
        # Zeros where no sentence is, since 0 times a NaN is a NaN.
        rows = torch.where(present[:, None, None] > 0, rows, 0.0)
        return (self._gap(emissions, rows, ends, complete) * present).sum() / labeled

    def _gap(
        self, emissions: Tensor, rows: Tensor, ends: Tensor, complete: bool | None = None
    ) -> Tensor:
        assert self.chain is not None  # both callers have checked
        chain = self.chain()
        halves = complete is not None and emissions.shape[2] <= _FEW_TAGS
        total = (log_partition_by_halves if halves else log_partition)(emissions, ends, chain)
        return total - target_score(emissions, ends, rows, chain, complete)


def _order(batch: Batch) -> Tensor:
    """Return the rank of each word among the words sorted by their place in the rows."""
    return torch.argsort(torch.argsort(batch.words))


class _ChainParameters(nn.Module):
    """The weights of the CRF; zero at first, so that it starts as the linear head."""

    def __init__(self, n_tags: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(n_tags, n_tags))
        self.start = nn.Parameter(torch.zeros(n_tags))
        self.end = nn.Parameter(torch.zeros(n_tags))

    def forward(self) -> Chain:
        return Chain(self.transitions, self.start, self.end)


def attention_inputs(positions: Tensor, segments: Tensor, packs: bool) -> dict[str, Tensor]:
    """Return the encoder's mask, and positions if it reads packed rows.

    In a packed row each window attends to itself only.
    """
    if not packs:
        return {"attention_mask": (segments > 0).long()}
    mask = segments[:, None, :, None] == segments[:, None, None, :]
    return {"attention_mask": mask, "position_ids": positions}


def padded(flat: Tensor, lengths: tuple[int, ...]) -> Tensor:
    """Turn rows of words [n_words, n] into [n_sentences, longest, n], zeros behind the end."""
    return nn.utils.rnn.pad_sequence(list(flat.split(list(lengths))), batch_first=True)
