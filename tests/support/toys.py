"""Small worlds for the augmentation tests: sentences, random vectors, a tiny language model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2LMHeadModel

from seqmix.augment.table import Table
from seqmix.data.sentence import Sentence
from tests.support.tiny import bert_tokenizer

WORDS = tuple(f"w{i}" for i in range(40))
TAGS = ("O", "B-PER", "I-PER", "B-LOC")


def toy_table(
    seed: int = 0, width: int = 6, distance: str = "l2", words: tuple[str, ...] = WORDS
) -> Table:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(words) + 2, width)).astype(np.float32)
    names = ("[CLS]", *words, "piece")
    starts = np.array([name not in ("[CLS]", "piece") for name in names])
    ids = {name: i for i, name in enumerate(names)}
    return Table(
        names,
        vectors,
        starts,
        lambda word: (ids[word],) if word in ids else (1, len(names) - 1),
        distance,
    )


def toy_sentences(
    n: int = 12, seed: int = 0, shortest: int = 3, longest: int = 9
) -> list[Sentence]:
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        length = int(rng.integers(shortest, longest + 1))
        tags = rng.choice(TAGS, size=length, p=[0.4, 0.25, 0.1, 0.25])
        made.append(
            Sentence(f"s{i}", tuple(rng.choice(WORDS, size=length).tolist()), tuple(tags.tolist()))
        )
    return made


def sentences_strategy(most: int = 8) -> st.SearchStrategy[list[Sentence]]:
    row = st.sampled_from(TAGS) | st.just({"B-PER": 0.5, "O": 0.5})
    one = st.lists(st.tuples(st.sampled_from(WORDS), row), min_size=1, max_size=8)
    return st.lists(one, min_size=2, max_size=most).map(
        lambda all: [
            Sentence(f"s{i}", tuple(w for w, _ in own), tuple(t for _, t in own))
            for i, own in enumerate(all)
        ]
    )


def write_lm(folder: Path) -> str:
    """A GPT-2 of random weights over single letters, 48 positions."""
    tokenizer = bert_tokenizer(48)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=48,
        bos_token_id=2,
        eos_token_id=3,
        initializer_range=0.3,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.add_special_tokens({"bos_token": "[CLS]", "eos_token": "[SEP]"})
    tokenizer.save_pretrained(folder)
    return str(folder)
