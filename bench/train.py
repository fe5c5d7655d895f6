"""Training: our loop against the Hugging Face Trainer with a padding collator, on the same data.

python bench/train.py [--sizes 700] [--epochs 10] [--data ../shared/data/conll03]
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
import warnings

import numpy as np
import torch
from transformers import (
    BertForTokenClassification,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from common import Corpus, load, record, show
from seqmix.data.scoring import score
from seqmix.starter import load_encoder
from seqmix.tagger import Settings, Tagger

logging.getLogger("transformers").setLevel(logging.ERROR)


def ours(corpus: Corpus, n: int, epochs: int, seed: int) -> tuple[float, float]:
    """Seconds to train, and F1 of token-wise predictions on the test set."""
    tagger = Tagger(settings=Settings(epochs=epochs))
    start = time.perf_counter()
    tagger.fit(corpus.train[:n], np.random.default_rng(seed), corpus.tags)
    seconds = time.perf_counter() - start
    found = [s.tags for s in tagger.predict([s.unlabeled() for s in corpus.test], legal=False)]
    return seconds, score([s.tags for s in corpus.test], found).f1


def trainer(corpus: Corpus, n: int, epochs: int, seed: int) -> tuple[float, float]:
    """The same through `Trainer`: tokenized ahead, padded to the longest of a batch."""
    set_seed(seed)
    start = time.perf_counter()
    encoder, tokenizer = load_encoder()
    encoder.config.num_labels = len(corpus.tags)
    model = BertForTokenClassification(encoder.config)
    model.bert.load_state_dict(encoder.state_dict())
    items = [_item(sentence, tokenizer, corpus) for sentence in corpus.train[:n]]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=32,
            learning_rate=3e-4, warmup_steps=0.1, weight_decay=0.01,
            save_strategy="no", report_to=[], disable_tqdm=True,
            use_cpu=not torch.cuda.is_available(), logging_strategy="no",
            bf16=torch.cuda.is_available(), seed=seed,
        )  # fmt: skip
        Trainer(
            model,
            arguments,
            train_dataset=items,
            data_collator=DataCollatorForTokenClassification(tokenizer),
        ).train()
    seconds = time.perf_counter() - start
    return seconds, score(
        [s.tags for s in corpus.test], _predicted(model.eval(), tokenizer, corpus)
    ).f1


def _item(sentence, tokenizer, corpus):
    encoded = tokenizer(
        list(sentence.tokens), is_split_into_words=True, truncation=True, max_length=128
    )
    words = encoded.word_ids()
    firsts = [w is not None and (i == 0 or words[i - 1] != w) for i, w in enumerate(words)]
    labels = [
        corpus.tags.id(sentence.tags[w]) if first else -100
        for w, first in zip(words, firsts, strict=True)
    ]
    return {
        "input_ids": encoded["input_ids"],
        "attention_mask": encoded["attention_mask"],
        "labels": labels,
    }


@torch.inference_mode()
def _predicted(model, tokenizer, corpus):
    items, found = [_item(sentence, tokenizer, corpus) for sentence in corpus.test], []
    for first in range(0, len(items), 64):
        some = items[first : first + 64]
        inputs = [
            {"input_ids": item["input_ids"], "attention_mask": item["attention_mask"]}
            for item in some
        ]
        best = (
            model(**tokenizer.pad(inputs, return_tensors="pt").to(model.device))
            .logits.argmax(2)
            .tolist()
        )
        for sentence, item, ids in zip(corpus.test[first : first + 64], some, best, strict=True):
            tags = [
                corpus.tags.tags[i]
                for i, label in zip(ids, item["labels"], strict=False)
                if label != -100
            ]  # behind them is padding
            found.append(tags + ["O"] * (len(sentence) - len(tags)))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[700])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--data",
        default=None,
        help="a folder with CoNLL-03's train.txt and test.txt; the gazette without it",
    )
    args = parser.parse_args()
    corpus = load(args.data)
    rows = []
    ours(corpus, 32, 1, 0), trainer(corpus, 32, 1, 0)  # warm: libraries loaded, device ready
    for n in args.sizes:
        n = min(n, len(corpus.train))
        runs = [
            (ours(corpus, n, args.epochs, seed), trainer(corpus, n, args.epochs, seed))
            for seed in range(args.seeds)
        ]
        us, peer = np.mean(runs, axis=0)
        rows.append(
            [
                corpus.name,
                n,
                f"{us[0]:.1f} s",
                f"{peer[0]:.1f} s",
                f"{peer[0] / us[0]:.2f}×",
                f"{100 * us[1]:.1f}",
                f"{100 * peer[1]:.1f}",
            ]
        )
        where = "cuda" if torch.cuda.is_available() else "cpu"
        note = (
            f"peer: Trainer; F1 {100 * us[1]:.1f} against {100 * peer[1]:.1f}; {args.seeds} seeds"
        )
        record(
            "train",
            f"{where}, {n} sentences, {args.epochs} epochs",
            us[0],
            "s",
            peer=peer[0],
            note=note,
        )
    show(["data", "sentences", "seqmix", "Trainer", "ratio", "F1 seqmix", "F1 Trainer"], rows)
