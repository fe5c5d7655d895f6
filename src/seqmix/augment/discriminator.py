"""Is a generated sentence plausible? Perplexity under a causal language model, and a range test beside it (Eqs. 9–10).

The score of a sentence is its own, whatever batch it was in: b to the mean natural-log loss of its pieces, given a BOS that is not
scored itself, so a sentence of one piece has a score. b is e (what everyone calls perplexity) or 2 (the paper's formula, literally).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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

_BUDGET = {"cpu": 1024, "cuda": 16384}  # pieces a batch
_STRIDE = 16  # pieces between two looks at who is out already
_TEXT = "<|endoftext|>"
_CHAT = ("<|im_start|>", "<|im_end|>")


@dataclass
class Perplexity:
    """Scores sentences under a language model: `starter`, a Hugging Face name, or a folder (GGUF too)."""

    model: str = STARTER
    base: Base = "e"
    device: str | None = None
    computed: int = field(
        default=0, init=False
    )  # pieces that went through the model: what the savings are measured by
    _loaded: tuple[PreTrainedModel, PreTrainedTokenizerFast] | None = field(
        default=None, init=False, repr=False
    )
    _known: dict[tuple[str, ...], float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.base not in ("e", "2"):
            raise ConfigError(f"the base of the perplexity is {self.base!r}; it is 'e' or '2'")

    def scores(
        self,
        sentences: Sequence[Sentence],
        parents: Sequence[str] | None = None,
        above: float | NDArray[np.float64] = math.inf,
    ) -> NDArray[np.float64]:
        """The perplexity of each sentence; `inf` for one that is proven to lie above `above`, or above its own number there.

        `parents` names the parent each sentence was made from: what those with the same parent share at their start is read once.
        """
        highest = np.log(np.broadcast_to(np.asarray(above, dtype=float), (len(sentences),))) / (
            1.0 if self.base == "e" else math.log(2)
        )
        todo: dict[tuple[str, ...], str] = {}
        limits: dict[tuple[str, ...], float] = {}
        for i, sentence in enumerate(sentences):
            if sentence.tokens not in self._known and sentence.tokens:
                todo.setdefault(sentence.tokens, parents[i] if parents is not None else str(i))
                limits[sentence.tokens] = max(
                    limits.get(sentence.tokens, -math.inf), float(highest[i])
                )
        families: dict[str, list[tuple[str, ...]]] = {}
        for tokens, parent in todo.items():
            families.setdefault(parent, []).append(tokens)
        proven: set[tuple[str, ...]] = set()
        for tokens, loss in self._losses(list(families.values()), limits):
            if math.isinf(loss):
                proven.add(tokens)
            else:
                self._known[tokens] = loss
        return np.array(
            [self._score(s.tokens) if s.tokens not in proven else math.inf for s in sentences]
        )

    def _score(self, tokens: tuple[str, ...]) -> float:
        if not tokens:
            return math.inf
        loss = self._known[tokens]
        return math.exp(min(loss, 700)) if self.base == "e" else 2.0 ** min(loss, 1000)

    def _losses(
        self, families: Sequence[Sequence[tuple[str, ...]]], limits: Mapping[tuple[str, ...], float]
    ) -> list[tuple[tuple[str, ...], float]]:
        """The mean loss of each text; `inf` once it is certain to exceed its limit."""
        if not families:
            return []
        model, tokenizer = self._ready()
        encoded = [
            [self._ids(tokens, tokenizer, model) for tokens in family] for family in families
        ]
        shared = [_common_prefix(own) if len(own) > 1 else 1 for own in encoded]  # 1: the BOS alone
        order = sorted(
            range(len(families)), key=lambda f: (shared[f], -max(len(ids) for ids in encoded[f]))
        )
        found: list[tuple[tuple[str, ...], float]] = []
        batch: list[int] = []
        size = 0
        for f in [*order, -1]:
            width = max(len(ids) for ids in encoded[f]) * len(encoded[f]) if f >= 0 else 0
            if batch and (f < 0 or size + width > _BUDGET.get(model.device.type, 1024)):
                texts = [tokens for b in batch for tokens in families[b]]
                highest = [limits[tokens] for tokens in texts]
                found += zip(
                    texts,
                    self._family_losses(
                        model, [encoded[b] for b in batch], [shared[b] for b in batch], highest
                    ),
                    strict=True,
                )
                batch, size = [], 0
            if f >= 0:
                batch.append(f)
                size += width
        return found

    @torch.inference_mode()
    def _family_losses(
        self,
        model: PreTrainedModel,
        families: Sequence[Sequence[list[int]]],
        shared: Sequence[int],
        limits: Sequence[float],
    ) -> list[float]:
        """Prefixes first, once a family; then the rest of every text, a stride at a time, dropping those proven to be out.

        subtle: losses are never negative, so a partial sum above limit × length settles the matter exactly.
        """
        device = model.device
        prefixes, mask = _padded(
            [own[0][:n] for own, n in zip(families, shared, strict=True)], device
        )
        cache = DynamicCache()
        logits = self._forward(model, prefixes, mask, torch.cumsum(mask, 1) - 1, cache)
        before = _losses_of(logits[:, :-1], prefixes[:, 1:], mask[:, 1:]).sum(1)  # [n_families]
        last = logits[
            torch.arange(len(families), device=device), mask.sum(1) - 1
        ]  # what each prefix expects next
        member = torch.tensor([f for f, own in enumerate(families) for _ in own], device=device)
        cache.batch_select_indices(member)
        rests, rest_mask = _padded(
            [ids[n:] for own, n in zip(families, shared, strict=True) for ids in own], device
        )
        lengths = torch.tensor([len(ids) - 1 for own in families for ids in own], device=device)
        most = torch.tensor(limits, device=device, dtype=torch.float32) * lengths
        sums, expected, seen = before[member], last[member], mask[member]
        out = torch.full((len(member),), torch.inf, device=device)
        live = torch.arange(len(member), device=device)
        for start in range(0, rests.shape[1], _STRIDE):
            stop = min(start + _STRIDE, rests.shape[1])
            now, now_mask = rests[live, start:stop], rest_mask[live, start:stop]
            reached = seen.sum(1, keepdim=True)
            logits = self._forward(
                model,
                now,
                torch.cat([seen, now_mask], 1),
                (reached + torch.cumsum(now_mask, 1) - 1).clamp(min=0),
                cache,
            )
            shifted = torch.cat([expected[:, None], logits[:, :-1]], 1)
            sums = sums + _losses_of(shifted, now, now_mask).sum(1)
            ended = rest_mask[live].sum(1) <= stop
            certain = sums > most[live]
            out[live[ended & ~certain]] = (sums / lengths[live])[ended & ~certain]
            going = torch.nonzero(~(ended | certain))[:, 0]
            if not len(going):
                break
            seen = torch.cat([seen, now_mask], 1)[going]
            sums, expected, live = sums[going], logits[going, -1], live[going]
            cache.batch_select_indices(going)
        return [float(loss) for loss in out.cpu().double()]

    def _forward(
        self,
        model: PreTrainedModel,
        ids: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
        cache: Any,
    ) -> torch.Tensor:
        self.computed += int(ids.numel())
        answer = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        )
        logits: torch.Tensor = answer.logits
        return logits

    def _ids(
        self, tokens: tuple[str, ...], tokenizer: PreTrainedTokenizerFast, model: PreTrainedModel
    ) -> list[int]:
        """BOS and pieces, cut to what the model can read."""
        room = int(
            getattr(model.config, "max_position_embeddings", 0)
            or getattr(model.config, "n_positions", 1024)
        )
        start = " ".join(
            token[:MAX_LETTERS] for token in tokens[: 4 * room]
        )  # what is cut off anyway is not tokenized first
        with tokenizing():
            ids = tokenizer(
                start, add_special_tokens=False, verbose=False
            ).input_ids  # cut below: no warning
        ids = ids or [tokenizer.unk_token_id or 0]
        return [_begin(tokenizer), *ids[: room - 1]]

    def _ready(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        if self._loaded is None:
            self._loaded = _language_model(
                self.model, self.device or ("cuda" if torch.cuda.is_available() else "cpu")
            )
        return self._loaded


def _begin(tokenizer: PreTrainedTokenizerFast) -> int:
    """The id a text begins with: BOS, or what stands for it; a marker of chats is none, unless there is nothing else."""
    named = [
        tokenizer.bos_token,
        _TEXT if _TEXT in tokenizer.get_vocab() else None,
        tokenizer.eos_token,
        tokenizer.cls_token,
    ]
    present = [str(token) for token in named if token is not None]
    return (
        int(
            tokenizer.convert_tokens_to_ids(
                next((t for t in present if t not in _CHAT), present[0])
            )
        )
        if present
        else 0
    )


@lru_cache(maxsize=2)
def _language_model(name: str, device: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Kept for all runs of a process: nothing trains it."""
    model, tokenizer = load_language_model(name)
    return model.to(device), tokenizer


def _padded(
    texts: Sequence[Sequence[int]], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids [n, longest] padded on the right, and their mask."""
    width = max(len(text) for text in texts)
    ids = np.zeros((len(texts), width), dtype=np.int64)
    mask = np.zeros((len(texts), width), dtype=np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)


def _losses_of(logits: torch.Tensor, targets: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """−log p of each target [n, length]; 0 where masked."""
    if not targets.shape[1]:
        return logits.new_zeros(targets.shape)
    logits = logits.float()
    loss = torch.logsumexp(logits, dim=2) - logits.gather(2, targets[:, :, None])[:, :, 0]
    return loss.clamp(min=0) * mask


def _common_prefix(texts: Sequence[Sequence[int]]) -> int:
    """How many ids all texts start with, at least one left to score in each."""
    shortest = min(len(text) for text in texts) - 1
    same = 0
    while same < shortest and all(text[same] == texts[0][same] for text in texts):
        same += 1
    return max(1, same)
