"""What the starter's models learn: hidden words, also with entity types, or the next word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedModel

from seqmix.starter.loader import fill, read_int8, starter_tokenizer

MASKED = 0.2  # of the pieces
WHOLE_MENTIONS = 0.5  # of the rows hide mentions as a whole
OUTSIDE_WEIGHT = 0.2  # most pieces are outside
IGNORED = 65535
_NO_LOSS = -100

Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class Objective:
    """A model, rows drawn for it, its losses by name, and heads that are trained with it.

    `shares` are further figures for the held-out text.
    """

    model: PreTrainedModel
    draw: Callable[[Tensor, int, int], Batch]
    losses: Callable[..., dict[str, Tensor]]
    shares: Callable[..., dict[str, Tensor]] = lambda *batch: {}
    heads: nn.ModuleDict = field(default_factory=nn.ModuleDict)


def new_encoder(layers: int, width: int, heads: int, positions: int) -> BertForMaskedLM:
    """Return a BERT with random weights."""
    tokenizer = starter_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=positions,
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForMaskedLM(config)


def stored_encoder(folder: Path) -> BertForMaskedLM:
    """Return the encoder of an earlier pretraining."""
    model = BertForMaskedLM(BertConfig.from_pretrained(folder))
    fill(model, read_int8(folder / "model.int8.safetensors"))
    return model


def new_language_model(layers: int, width: int, positions: int) -> GPT2LMHeadModel:
    """Return a GPT-2 with random weights."""
    tokenizer = starter_tokenizer()
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=width,
        n_layer=layers,
        n_head=max(1, width // 64),
        n_positions=positions,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return GPT2LMHeadModel(config)


def hidden_words(model: BertForMaskedLM) -> Objective:
    """Guess words that are hidden as a whole."""
    hide = masking(model.device)

    def draw(source: Tensor, n: int, length: int) -> Batch:
        return hide(slices(source, n, length))

    def losses(ids: Tensor, at: Tensor, truth: Tensor) -> dict[str, Tensor]:
        return {
            "masked": masked_loss(model, model.bert(input_ids=ids).last_hidden_state, at, truth)
        }

    return Objective(model, draw, losses)


def words_and_types(model: BertForMaskedLM, types: int) -> Objective:
    """Guess hidden words, and the label of every piece; the source holds ids and labels."""
    tokenizer, device, hide = starter_tokenizer(), model.device, masking(model.device)
    head = nn.Linear(model.config.hidden_size, 2 * types + 2, device=device)
    nn.init.normal_(head.weight, std=0.02)
    nn.init.zeros_(head.bias)
    weight = torch.ones(2 * types + 2, device=device)
    weight[0] = OUTSIDE_WEIGHT

    def draw(source: Tensor, n: int, length: int) -> Batch:
        ids, labels = slices(source, n, length)
        ids[:, 0], ids[:, -1] = tokenizer.cls_token_id, tokenizer.sep_token_id
        labels[:, 0] = labels[:, -1] = IGNORED
        inside = (
            (labels % 2 == 1)
            & (labels < IGNORED)
            & (torch.rand(n, 1, device=device) < WHOLE_MENTIONS)
        )
        return *hide(ids, inside), labels.masked_fill(labels == IGNORED, _NO_LOSS)

    def losses(ids: Tensor, at: Tensor, truth: Tensor, labels: Tensor) -> dict[str, Tensor]:
        states = model.bert(input_ids=ids).last_hidden_state
        scores = head(states).float().flatten(0, 1)
        typed = nn.functional.cross_entropy(
            scores, labels.flatten(), weight=weight, ignore_index=_NO_LOSS
        )
        return {"masked": masked_loss(model, states, at, truth), "types": typed}

    def shares(ids: Tensor, at: Tensor, truth: Tensor, labels: Tensor) -> dict[str, Tensor]:
        guessed = head(model.bert(input_ids=ids).last_hidden_state).argmax(-1)
        return {"mention pieces right": (guessed == labels)[labels > 0].float().mean()}

    return Objective(model, draw, losses, shares, nn.ModuleDict({"types": head}))


def next_word(model: GPT2LMHeadModel) -> Objective:
    """Guess the next piece; each row starts with [CLS] as BOS."""
    start = starter_tokenizer().cls_token_id

    def draw(source: Tensor, n: int, length: int) -> Batch:
        ids = slices(source, n, length)
        ids[:, 0] = start
        return (ids,)

    def losses(ids: Tensor) -> dict[str, Tensor]:
        states = model.transformer(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        return {
            "next": nn.functional.cross_entropy(
                model.lm_head(states).float().flatten(0, 1), ids[:, 1:].flatten()
            )
        }

    return Objective(model, draw, losses)


def slices(source: Tensor, n: int, length: int) -> Tensor:
    """Return n random stretches of the last axis."""
    start = torch.randint(0, source.shape[-1] - length, (n, 1), device=source.device)
    return source[..., start + torch.arange(length, device=source.device)].long()


def masking(device: torch.device) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Return a function that hides words in rows of ids.

    It returns the rows with masks, the places to guess, and the ids that were there.
    """
    tokenizer = starter_tokenizer()
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    later_piece = torch.tensor([name.startswith("##") for name in names], device=device)
    special = torch.tensor([name in tokenizer.all_special_tokens for name in names], device=device)

    def hide(ids: Tensor, joined: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Hide words; `joined` pieces are hidden with the piece before them, like a word's."""
        (n, length), hidden = ids.shape, int(MASKED * ids.shape[1])
        later = later_piece[ids] if joined is None else later_piece[ids] | joined
        word = (~later).cumsum(1)  # the number of each piece's word
        rank = (
            torch.gather(torch.rand(n, length + 1, device=device), 1, word)
            + torch.rand(n, length, device=device) * 1e-4
        )
        at = rank.masked_fill(special[ids], -1).topk(hidden, dim=1).indices
        truth, luck = torch.gather(ids, 1, at), torch.rand(n, hidden, device=device)
        random = torch.randint(1000, len(names), truth.shape, device=device)
        shown = torch.where(
            luck < 0.8, tokenizer.mask_token_id, torch.where(luck < 0.9, random, truth)
        )
        return ids.scatter(1, at, shown), at, truth

    return hide


def masked_loss(model: BertForMaskedLM, states: Tensor, at: Tensor, truth: Tensor) -> Tensor:
    """Return nats per hidden piece; the head sees hidden places only."""
    hidden = torch.gather(states, 1, at[..., None].expand(-1, -1, states.shape[-1]))
    return nn.functional.cross_entropy(model.cls(hidden).float().flatten(0, 1), truth.flatten())
