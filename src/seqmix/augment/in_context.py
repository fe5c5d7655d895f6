"""A masked LM chooses, among the words nearest to a mixed embedding, the one that fits best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from seqmix.augment.table import Table
from seqmix.data.sentence import Sentence
from seqmix.starter import load_encoder

_BATCH = 64  # sentences read at once


@dataclass(frozen=True)
class Gap:
    """A place in a sentence, and the entries of the table that may fill it."""

    tokens: tuple[str, ...]
    place: int
    entries: Sequence[int]


def fill(gaps: Sequence[Gap], table: Table, encoder: str) -> list[int]:
    """Return the entry that the encoder, as a masked LM, finds most probable in each gap.

    The table must be that encoder's, so that an entry is a piece of its vocabulary.
    """
    model, tokenizer = _masked_lm(encoder)
    device = next(model.parameters()).device
    best: list[int] = []
    remaining = iter(gaps)
    while part := list(islice(remaining, _BATCH)):
        rows, places = zip(*(_encoded(gap, table, tokenizer) for gap in part), strict=True)
        ids = pad_sequence(list(rows), batch_first=True, padding_value=0).to(device)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True).to(device)
        with torch.inference_mode():
            scores = model(input_ids=ids, attention_mask=mask).logits
        for row, (gap, place) in enumerate(zip(part, places, strict=True)):
            entries = torch.tensor(gap.entries, device=device)
            best.append(gap.entries[int(scores[row, place, entries].argmax())])
    return best


def choose(
    places: Sequence[tuple[Sentence, int]],
    choices: Sequence[Sequence[Sequence[int]]],
    table: Table,
    encoder: str,
) -> list[list[str]]:
    """Return the words chosen for each sentence from a place on, one for each list of entries."""
    gaps = [
        Gap(sentence.tokens, start + i, entries)
        for (sentence, start), lists in zip(places, choices, strict=True)
        for i, entries in enumerate(lists)
    ]
    chosen = iter(fill(gaps, table, encoder))
    return [[table.words[id] for id in islice(chosen, len(lists))] for lists in choices]


def _encoded(gap: Gap, table: Table, tokenizer: Any) -> tuple[torch.Tensor, int]:
    """Return the pieces of a sentence with the gap hidden, and the gap's place among them."""
    before = [piece for token in gap.tokens[: gap.place] for piece in table.split(token)]
    after = [piece for token in gap.tokens[gap.place + 1 :] for piece in table.split(token)]
    room = tokenizer.model_max_length if tokenizer.model_max_length < 10_000 else 512
    before = before[-(room // 2 - 2) :]
    after = after[: room // 2 - 2]
    ids = [tokenizer.cls_token_id, *before, tokenizer.mask_token_id, *after, tokenizer.sep_token_id]
    return torch.tensor(ids), len(before) + 1


@lru_cache(maxsize=2)
def _masked_lm(encoder: str) -> tuple[Any, Any]:
    model, tokenizer = load_encoder(encoder, masked_lm=True)
    return model.eval().to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer
