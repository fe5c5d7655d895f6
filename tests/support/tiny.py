"""Encoders that train in a blink: two layers, 32 wide, a vocabulary of letters and a few words."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from seqmix.data.sentence import Sentence

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,-'"
WORDS = (
    "the",
    "in",
    "of",
    "and",
    "Lena",
    "Oslo",
    "Rome",
    "Acme",
    "lives",
    "works",
    "visited",
    "left",
    "at",
    "Ada",
    "Bo",
    "Mary",
    "Smith",
)
_SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


def bert_tokenizer(max_length: int = 64) -> PreTrainedTokenizerFast:
    """WordPiece: known words whole, others letter by letter, control characters vanish."""
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *WORDS,
        *LETTERS,
        *("##" + letter for letter in LETTERS),
    ]
    backend = Tokenizer(
        models.WordPiece(
            {piece: i for i, piece in enumerate(pieces)},
            unk_token="[UNK]",
            max_input_chars_per_word=10_000,
        )
    )
    backend.normalizer = normalizers.BertNormalizer(lowercase=False)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        mask_token="[MASK]",
        model_max_length=max_length,
    )


def roberta_tokenizer(max_length: int | None = 64) -> PreTrainedTokenizerFast:
    """Byte-level BPE without merges: a piece a byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *alphabet, "<mask>"]
    backend = Tokenizer(
        models.BPE({piece: i for i, piece in enumerate(pieces)}, [], unk_token="<unk>")
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=True
    )
    known = {} if max_length is None else {"model_max_length": max_length}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        **known,
    )


def write_bert(folder: Path, dropout: float = 0.1, pooler: bool = False) -> str:
    """A BERT of random weights, the same each time."""
    tokenizer = bert_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=0.2,
        **_SHAPE,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        BertModel(config, add_pooling_layer=pooler).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def write_masked_lm(folder: Path) -> str:
    """The same BERT with a masked-LM head, so that it can read text."""
    from seqmix.starter import load_encoder

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model, tokenizer = load_encoder(write_bert(folder / "bare"), masked_lm=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def write_roberta(folder: Path, max_length: int | None = 64) -> str:
    """A RoBERTa, whose positions are counted from behind the padding id."""
    tokenizer = roberta_tokenizer(max_length)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=66,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        type_vocab_size=1,
        initializer_range=0.2,
        **_SHAPE,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def toy(n: int = 24) -> list[Sentence]:
    """Sentences whose tags follow from their words."""
    people, places, firms = (
        ("Lena", "Ada", "Bo", "Mary Smith"),
        ("Oslo", "Rome", "New York"),
        ("Acme", "Acme Works"),
    )
    shapes = (
        ("{PER} lives in {LOC} .", 0),
        ("{PER} works at {ORG} .", 1),
        ("{ORG} left {LOC} and {PER} .", 2),
        ("the {ORG} of {LOC} visited {PER}", 3),
    )
    sentences = []
    for i in range(n):
        fill = {"PER": people[i % 4], "LOC": places[i % 3], "ORG": firms[(i // 2) % 2]}
        tokens: list[str] = []
        tags: list[str] = []
        for word in shapes[(i + i // 4) % 4][0].split():
            kind = word.strip("{}") if word.startswith("{") else None
            parts = fill[kind].split() if kind else [word]
            tokens += parts
            tags += (
                [f"{'B' if j == 0 else 'I'}-{kind}" for j in range(len(parts))] if kind else ["O"]
            )
        sentences.append(Sentence(f"toy:{i}", tuple(tokens), tuple(tags)))
    return sentences
