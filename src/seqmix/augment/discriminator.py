"""The perplexity of generated sentences under a causal language model (Eq. 9).

A sentence's score does not depend on its batch: it is b to the mean natural-log loss of its
subwords, read after a BOS that is not scored; b is e, or 2 as in the paper's formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerFast

from seqmix.augment.settings import Base
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.starter import STARTER, load_language_model
from seqmix.starter.guarded import MAX_LETTERS, tokenizing

Tokens = tuple[str, ...]
_BUDGET = {"cpu": 1024, "cuda": 16384}  # subwords per batch
_STRIDE = 16  # subwords between two checks for sentences that are out of range
_TEXT = "<|endoftext|>"
_CHAT = ("<|im_start|>", "<|im_end|>")


@dataclass
class Perplexity:
    """The perplexity of sentences under a language model, as SeqMix's discriminator.

    Args:
        model: `starter`, a Hugging Face name, or a folder.
        base: The base of the perplexity, `e` or `2`.
        device: `cpu` or `cuda`; by default the best available.
    """

    model: str = STARTER
    base: Base = "e"
    device: str | None = None
    computed: int = field(default=0, init=False)  # subwords the model has read
    _loaded: tuple[PreTrainedModel, PreTrainedTokenizerFast] | None = field(
        default=None, init=False, repr=False
    )
    _losses: dict[Tokens, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.base not in ("e", "2"):
            raise ConfigError(f"the base of the perplexity must be 'e' or '2'; got {self.base!r}")

    def scores(
        self,
        sentences: Sequence[Sentence],
        parents: Sequence[str] | None = None,
        above: float | NDArray[np.float64] = math.inf,
    ) -> NDArray[np.float64]:
        """Return the perplexity of each sentence; `inf` where it certainly exceeds `above`.

        Args:
            sentences: What to score; no sentence is read twice.
            parents: The parent of each sentence: a start that siblings share is read once.
            above: The score above which the exact one does not matter, for all or for each.
        """
        highest = np.log(np.broadcast_to(np.asarray(above, dtype=float), (len(sentences),)))
        highest /= 1.0 if self.base == "e" else math.log(2)
        parent_of: dict[Tokens, str] = {}
        limits: dict[Tokens, float] = {}
        for i, sentence in enumerate(sentences):
            tokens = sentence.tokens
            if tokens and tokens not in self._losses:
                parent_of.setdefault(tokens, parents[i] if parents is not None else str(i))
                limits[tokens] = max(limits.get(tokens, -math.inf), float(highest[i]))
        families: dict[str, list[Tokens]] = {}
        for tokens, parent in parent_of.items():
            families.setdefault(parent, []).append(tokens)
        too_high: set[Tokens] = set()
        for tokens, loss in self._compute(list(families.values()), limits):
            if math.isinf(loss):
                too_high.add(tokens)
            else:
                self._losses[tokens] = loss
        return np.array(
            [math.inf if s.tokens in too_high else self._score(s.tokens) for s in sentences]
        )

    def _score(self, tokens: Tokens) -> float:
        if not tokens:
            return math.inf
        loss = self._losses[tokens]
        return math.exp(min(loss, 700)) if self.base == "e" else 2.0 ** min(loss, 1000)

    def _compute(
        self, families: Sequence[Sequence[Tokens]], limits: Mapping[Tokens, float]
    ) -> Iterator[tuple[Tokens, float]]:
        """Yield the mean loss of each text; `inf` where it certainly exceeds its limit."""
        if not families:
            return
        model, tokenizer = self._load()
        encoded = [[encode(tokens, tokenizer, model) for tokens in family] for family in families]
        shared = [_common_prefix(ids) if len(ids) > 1 else 1 for ids in encoded]  # 1: BOS alone
        longest = [max(map(len, ids)) for ids in encoded]
        order = sorted(range(len(families)), key=lambda f: (shared[f], -longest[f]))
        sizes = [longest[f] * len(encoded[f]) for f in order]
        for batch in _batches(order, sizes, _BUDGET.get(model.device.type, 1024)):
            texts = [tokens for f in batch for tokens in families[f]]
            losses = self._family_losses(
                model,
                [encoded[f] for f in batch],
                [shared[f] for f in batch],
                [limits[tokens] for tokens in texts],
            )
            yield from zip(texts, losses, strict=True)

    @torch.inference_mode()
    def _family_losses(
        self,
        model: PreTrainedModel,
        families: Sequence[Sequence[list[int]]],
        shared: Sequence[int],
        limits: Sequence[float],
    ) -> list[float]:
        """Read the prefix of each family once, then the rest of every text in strides.

        Losses are never negative, so a text whose partial sum exceeds limit × length is certain to
        be out of range, and the rest of it need not be read.
        """
        device = model.device
        prefixes, mask = _padded(
            [texts[0][:n] for texts, n in zip(families, shared, strict=True)], device
        )
        cache = DynamicCache()
        logits = self._forward(model, prefixes, mask, torch.cumsum(mask, 1) - 1, cache)
        before = _token_losses(logits[:, :-1], prefixes[:, 1:], mask[:, 1:]).sum(1)  # [n_families]
        last = logits[torch.arange(len(families), device=device), mask.sum(1) - 1]
        member = torch.tensor([f for f, texts in enumerate(families) for _ in texts], device=device)
        cache.batch_select_indices(member)
        rests, rest_mask = _padded(
            [ids[n:] for texts, n in zip(families, shared, strict=True) for ids in texts], device
        )
        lengths = torch.tensor([len(ids) - 1 for texts in families for ids in texts], device=device)
        most = torch.tensor(limits, device=device, dtype=torch.float32) * lengths
        sums, expected, seen = before[member], last[member], mask[member]
        means = torch.full((len(member),), torch.inf, device=device)
        live = torch.arange(len(member), device=device)
        for start in range(0, rests.shape[1], _STRIDE):
            stop = min(start + _STRIDE, rests.shape[1])
            ids, ids_mask = rests[live, start:stop], rest_mask[live, start:stop]
            positions = seen.sum(1, keepdim=True) + torch.cumsum(ids_mask, 1) - 1
            seen = torch.cat([seen, ids_mask], 1)
            logits = self._forward(model, ids, seen, positions.clamp(min=0), cache)
            shifted = torch.cat([expected[:, None], logits[:, :-1]], 1)
            sums = sums + _token_losses(shifted, ids, ids_mask).sum(1)
            ended = rest_mask[live].sum(1) <= stop
            exceeded = sums > most[live]
            kept = ended & ~exceeded
            means[live[kept]] = (sums / lengths[live])[kept]
            going = torch.nonzero(~(ended | exceeded))[:, 0]
            if not len(going):
                break
            sums, expected, seen, live = sums[going], logits[going, -1], seen[going], live[going]
            cache.batch_select_indices(going)
        return [float(loss) for loss in means.cpu().double()]

    def _forward(
        self,
        model: PreTrainedModel,
        ids: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
        cache: Any,
    ) -> torch.Tensor:
        self.computed += int(ids.numel())
        logits: torch.Tensor = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        ).logits
        return logits

    def _load(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        if self._loaded is None:
            device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
            self._loaded = _language_model(self.model, device)
        return self._loaded


@lru_cache(maxsize=2)
def _language_model(name: str, device: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load a language model, which all runs of a process share."""
    model, tokenizer = load_language_model(name)
    return model.to(device), tokenizer


def encode(tokens: Tokens, tokenizer: PreTrainedTokenizerFast, model: PreTrainedModel) -> list[int]:
    """Return BOS and the ids of the text, cut to what the model can read."""
    config = model.config
    room = getattr(config, "max_position_embeddings", 0) or getattr(config, "n_positions", 1024)
    text = " ".join(token[:MAX_LETTERS] for token in tokens[: 4 * int(room)])
    with tokenizing():  # not verbose: it would warn of a length that is cut below
        ids = tokenizer(text, add_special_tokens=False, verbose=False).input_ids
    ids = ids or [tokenizer.unk_token_id or 0]
    return [_first_id(tokenizer), *ids[: int(room) - 1]]


def _first_id(tokenizer: PreTrainedTokenizerFast) -> int:
    """Return the id that a text begins with: BOS or its substitute, not a marker of chats."""
    names = [
        tokenizer.bos_token,
        _TEXT if _TEXT in tokenizer.get_vocab() else None,
        tokenizer.eos_token,
        tokenizer.cls_token,
    ]
    present = [str(token) for token in names if token is not None]
    if not present:
        return 0
    chosen = next((token for token in present if token not in _CHAT), present[0])
    return int(tokenizer.convert_tokens_to_ids(chosen))


def _batches(items: Sequence[int], sizes: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield consecutive items whose sizes add up to at most the budget, or single larger ones."""
    batch: list[int] = []
    total = 0
    for item, size in zip(items, sizes, strict=True):
        if batch and total + size > budget:
            yield batch
            batch = []
            total = 0
        batch.append(item)
        total += size
    if batch:
        yield batch


def _padded(
    texts: Sequence[Sequence[int]], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids [n, longest] padded on the right, and their mask."""
    width = max(len(text) for text in texts)
    ids = np.zeros((len(texts), width), dtype=np.int64)
    mask = np.zeros((len(texts), width), dtype=np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)


def _token_losses(logits: torch.Tensor, targets: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return −log p of each target [n, length]; 0 where masked."""
    if not targets.shape[1]:
        return logits.new_zeros(targets.shape)
    logits = logits.float()
    loss = torch.logsumexp(logits, dim=2) - logits.gather(2, targets[:, :, None])[:, :, 0]
    return loss.clamp(min=0) * mask


def _common_prefix(texts: Sequence[Sequence[int]]) -> int:
    """Return how many ids all texts start with, leaving at least one to score in each."""
    shortest = min(len(text) for text in texts) - 1
    same = 0
    while same < shortest and all(text[same] == texts[0][same] for text in texts):
        same += 1
    return max(1, same)
