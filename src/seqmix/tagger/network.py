"""The network: an encoder, dropout, and a linear or CRF head that scores every word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from seqmix.errors import ModelError
from seqmix.tagger.batches import Batch
from seqmix.tagger.crf import Chain, log_partition, log_partition_by_halves, target_score
from seqmix.tagger.on_cpu import is_short_cut, use_onednn, word_states

PLACES = 2**17  # read at once when predicting: twice what a batch of sentences has on a GPU
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
    layer: int = 0  # before which they are mixed; 0: the input embeddings

    def rows(self, target: Tensor) -> Tensor:
        """Return the tag rows [n_words, n_tags], mixed as the words are."""
        return self.weights[:, None] * target + (1 - self.weights[:, None]) * target[self.partners]

    def states(self, states: Tensor, words: Tensor) -> Tensor:
        """Return states [n_rows, width, size] with words' first pieces moved to their partners'."""
        flat = states.flatten(0, 1)
        return flat.index_copy(0, words, self.rows(flat[words]).to(flat.dtype)).view_as(states)


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
        use_onednn(encoder)
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
        if self.training or batch.ids.numel() <= PLACES:
            return self._hidden(batch, mixup)
        return torch.cat(list(self._in_parts(batch, self._hidden)))[_order(batch)]

    def _in_parts(self, batch: Batch, reduce: Callable[[Batch], Tensor]) -> Iterator[Tensor]:
        """Yield results for some rows at a time: a very long sentence does not fit into memory.

        This waits for the device, which an ordinary batch must not.
        """
        width = batch.ids.shape[1]
        rows = max(1, PLACES // width)
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
        if mixup is None and is_short_cut(self.encoder, batch):
            return word_states(self.encoder, batch)
        inputs = attention_inputs(batch.positions, batch.segments, self.packs)
        with self._mixing(batch, mixup):
            states: Tensor = self.encoder(input_ids=batch.ids, **inputs).last_hidden_state
        return states.flatten(0, 1).index_select(0, batch.words)

    @contextmanager
    def _mixing(self, batch: Batch, mixup: Mixup | None) -> Iterator[None]:
        """Mix words on their way into a layer, or as they are embedded."""
        if mixup is None:
            yield
            return
        if mixup.layer:
            hook = _layers(self.encoder)[mixup.layer].register_forward_pre_hook(
                lambda _, inputs: (mixup.states(inputs[0], batch.words), *inputs[1:])
            )
        else:
            hook = self.encoder.get_input_embeddings().register_forward_hook(
                lambda _, __, embedded: mixup.states(embedded, batch.words)
            )
        with hook:
            yield

    def forward(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        """Return the emission scores [n_words, n_tags] in float32."""
        if not self.training and batch.ids.numel() > PLACES:
            return torch.cat(list(self._in_parts(batch, self._scores)))[_order(batch)]
        return self._scores(batch, mixup)

    def _scores(self, batch: Batch, mixup: Mixup | None = None) -> Tensor:
        scores: Tensor = self.classifier(self.dropout(self._hidden(batch, mixup)))
        return scores.float()

    def loss(
        self,
        scores: Tensor,
        rows: Tensor,
        lengths: tuple[int, ...],
        weights: Tensor | None = None,
    ) -> Tensor:
        """Return the mean over labeled words of cross-entropy or the CRF's negative log-likelihood.

        Rows of NaN are missing; `weights` of sentences weigh their words.
        """
        words = None
        if weights is not None:
            words = weights.repeat_interleave(torch.tensor(lengths, device=weights.device))
        if self.chain is None:
            return self.word_loss(scores, rows, words)
        ends = torch.tensor(lengths, device=scores.device)
        gap = self._gap(padded(scores, lengths), padded(rows, lengths), ends)
        return (gap if weights is None else gap * weights).sum() / _total(rows[:, 0], words)

    def word_loss(self, scores: Tensor, rows: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the loss of a linear head, without asking the host; `weights` are of words."""
        q = torch.nan_to_num(rows)
        if weights is not None:
            q = q * weights[:, None]
        return -(q * torch.log_softmax(scores, dim=1)).sum() / _total(rows[:, 0], weights)

    def chain_loss(
        self, emissions: Tensor, rows: Tensor, ends: Tensor, present: Tensor, complete: bool
    ) -> Tensor:
        """Return the CRF's loss of a box [n_sentences, longest, n_tags], without asking the host.

        A sentence counts as much as it is `present`: 0, 1, or its weight.
        """
        labeled = _total(rows[:, :, 0], present[:, None])
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


def _total(first: Tensor, weights: Tensor | None) -> Tensor:
    """Return how many rows are labeled, weighted, from the first number of each; at least a bit."""
    labeled = ~torch.isnan(first)
    if weights is None:
        return labeled.sum().clamp(min=1)
    total = (labeled * weights).sum()
    return torch.where(total > 0, total, 1.0)


def _layers(encoder: PreTrainedModel) -> nn.ModuleList:
    """Return the layers of an encoder: its first list of as many modules as it has layers."""
    count = encoder.config.num_hidden_layers
    for module in encoder.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise ModelError(f"no layers were recognized in an encoder of type {type(encoder).__name__}")


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
