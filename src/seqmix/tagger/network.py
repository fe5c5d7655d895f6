"""The network: an encoder, dropout, and a linear or CRF head that scores every word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from seqmix.tagger.crf import Chain, log_partition, log_partition_by_halves, target_score
from seqmix.tagger.pieces import Batch

HEADS = ("linear", "crf")
_PLACES = (
    2**17
)  # that are read at once when predicting: twice what a batch of sentences has on a GPU
_FEW = 32  # tags, up to which a CRF's sum is taken by halves on a GPU: the arithmetic grows with their third power
_PACKS = {
    "bert": 0,
    "distilbert": 0,
    "electra": 0,
    "roberta": 1,
    "xlm-roberta": 1,
    "camembert": 1,
}  # 1: positions start behind pad


@dataclass(frozen=True)
class Mixup:
    """Mixup inside a batch: for each word the word it is mixed with, and the weight it keeps itself."""

    partners: Tensor  # [n_words] indices of words of the same batch
    weights: Tensor  # [n_words]

    def rows(self, target: Tensor) -> Tensor:
        """The tag rows [n_words, n_tags] mixed as the words are."""
        return self.weights[:, None] * target + (1 - self.weights[:, None]) * target[self.partners]


def autocast(device: torch.device, cache: bool = True) -> Any:
    """bf16 over float32 weights on a GPU.

    subtle: float32 on the CPU. Some virtual CPUs advertise AMX, lack it, and die of an illegal instruction in bf16 products.
    """
    return (
        torch.autocast("cuda", torch.bfloat16, cache_enabled=cache)
        if device.type == "cuda"
        else nullcontext()
    )


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
        if _PACKS.get(self.encoder.config.model_type, 0):
            return int(self.encoder.config.pad_token_id) + 1
        return 0

    def hidden(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        """The last hidden state of each word's first piece [n_words, width]."""
        if self.training or batch.ids.numel() <= _PLACES:
            return self._hidden(batch, mixup)
        return torch.cat(list(self._in_parts(batch, self._hidden)))[_order(batch)]

    def _in_parts(self, batch: Batch, reduce: Callable[[Batch], Tensor]) -> Iterator[Tensor]:
        """So many rows at a time: the windows of one endless sentence do not fit into memory together.

        subtle: this waits for the device, which an ordinary batch must not.
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
        words: dict[str, Tensor] = (
            {"input_ids": batch.ids}
            if mixup is None
            else {"inputs_embeds": self._mixed(batch, mixup)}
        )
        if self.packs:
            mask = (
                batch.segments[:, None, :, None] == batch.segments[:, None, None, :]
            )  # a window attends to itself only
            states = self.encoder(
                **words, attention_mask=mask, position_ids=batch.positions
            ).last_hidden_state
        else:
            states = self.encoder(
                **words, attention_mask=(batch.segments > 0).long()
            ).last_hidden_state
        first: Tensor = states.flatten(0, 1).index_select(0, batch.words)
        return first

    def _mixed(self, batch: Batch, mixup: Mixup) -> Tensor:
        """Input embeddings [n_rows, width, hidden] with each word's first piece moved towards its partner word's."""
        embedded: Tensor = self.encoder.get_input_embeddings()(batch.ids)
        flat = embedded.flatten(0, 1)
        own, other = flat[batch.words], flat[batch.words[mixup.partners]]
        return flat.index_copy(
            0, batch.words, mixup.weights[:, None] * own + (1 - mixup.weights[:, None]) * other
        ).view_as(embedded)

    def forward(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        """Emission scores [n_words, n_tags] in float32."""
        if not self.training and batch.ids.numel() > _PLACES:
            return torch.cat(list(self._in_parts(batch, self._scores)))[_order(batch)]
        return self._scores(batch, mixup)

    def _scores(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        scores: Tensor = self.classifier(self.dropout(self._hidden(batch, mixup)))
        return scores.float()

    def loss(self, scores: Tensor, rows: Tensor, lengths: tuple[int, ...]) -> Tensor:
        """Mean over labeled words: cross-entropy against the rows, or the CRF's negative log-likelihood. NaN rows are missing."""
        labeled = ~torch.isnan(rows[:, 0])
        if self.chain is None:
            q = torch.nan_to_num(rows)
            return -(q * torch.log_softmax(scores, dim=1)).sum() / labeled.sum().clamp(min=1)
        ends = torch.tensor(lengths, device=scores.device)
        gap = self._gap(padded(scores, lengths), padded(rows, lengths), ends)
        return gap.sum() / labeled.sum().clamp(min=1)

    def chain_loss(
        self, emissions: Tensor, rows: Tensor, ends: Tensor, there: Tensor, complete: bool
    ) -> Tensor:
        """The CRF's loss of sentences in a box [n_sentences, longest, n_tags]; those count that are there. The host is asked nothing."""
        labeled = (~torch.isnan(rows[:, :, 0])).sum().clamp(min=1)
        # subtle: a place without a sentence holds no label, and 0 times a NaN is a NaN
        return (
            self._gap(emissions, torch.where(there[:, None, None] > 0, rows, 0.0), ends, complete)
            * there
        ).sum() / labeled

    def _gap(
        self, emissions: Tensor, rows: Tensor, ends: Tensor, complete: bool | None = None
    ) -> Tensor:
        assert self.chain is not None  # both callers have looked
        chain = self.chain()
        few = complete is not None and emissions.shape[2] <= _FEW
        total = (log_partition_by_halves if few else log_partition)(emissions, ends, chain)
        return total - target_score(emissions, ends, rows, chain, complete)


def _order(batch: Batch) -> Tensor:
    """Where each word stands among the words sorted by their place in the rows."""
    return torch.argsort(torch.argsort(batch.words))


class _ChainParameters(nn.Module):
    """The CRF's own weights; zero at first, so that it starts as the linear head."""

    def __init__(self, n_tags: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(n_tags, n_tags))
        self.start = nn.Parameter(torch.zeros(n_tags))
        self.end = nn.Parameter(torch.zeros(n_tags))

    def forward(self) -> Chain:
        return Chain(self.transitions, self.start, self.end)


def padded(flat: Tensor, lengths: tuple[int, ...]) -> Tensor:
    """Words in a row [n_words, n] to one row a sentence [n_sentences, longest, n], zeros behind the end."""
    return nn.utils.rnn.pad_sequence(list(flat.split(list(lengths))), batch_first=True)
