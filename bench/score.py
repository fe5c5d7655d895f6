"""Scoring a pool by token entropy: ours, per-sentence scoring, and the limit, a bare forward pass.

python bench/score.py [--sizes 3453] [--data ../shared/data/conll03]

The peer is written from small-text's documentation: the classifier gives probabilities for
mini-batches of 12 in the pool's order, each padded to its longest, all of them come to the host,
and numpy takes the entropy row by row. The limit is the encoder alone, in the same precision, over
batches that are cut, sorted by length and on the device. Each is the median of three passes taken
in turn, the peer's over the first 300 sentences; the first pass of ours, with every sentence still
to be cut into pieces, stands beside.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from scipy.stats import entropy

from common import load, record, show
from seqmix.data.sentence import Sentence
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.batches import Batch, spread
from seqmix.tagger.inference import BUDGET, side_by_side
from seqmix.tagger.network import autocast
from seqmix.tagger.windows import CHUNK, by_length

_MINI = 12
_PEER = 300  # sentences the peer is given: at its rate a whole pool takes minutes


def ours(tagger: Tagger, sentences: list[Sentence]) -> np.ndarray:
    """As the loop does it."""
    return np.fromiter(tagger.unsure(sentences, "entropy"), float)


def per_sentence(tagger: Tagger, sentences: list[Sentence]) -> np.ndarray:
    """As small-text's documentation has it, with one row a token instead of one a document."""
    tokenizer, network, found = tagger.tokenizer, tagger.network, []
    for first in range(0, len(sentences), _MINI):
        mini = sentences[first : first + _MINI]
        batch = tokenizer(
            [list(s.tokens) for s in mini],
            is_split_into_words=True,
            padding=True,
            truncation=True,
            return_tensors="pt",
        )
        with torch.no_grad(), autocast(tagger.device):
            states = network.encoder(
                input_ids=batch["input_ids"].to(tagger.device),
                attention_mask=batch["attention_mask"].to(tagger.device),
            ).last_hidden_state
            proba = torch.softmax(network.classifier(states).float(), dim=2).cpu().numpy()
        for i in range(len(mini)):
            words = batch.word_ids(i)
            at = [p for p, w in enumerate(words) if w is not None and w != words[p - 1]]
            found.append(np.apply_along_axis(entropy, 1, proba[i, at]).mean())
    return np.array(found)


def ready(tagger: Tagger, sentences: list[Sentence]) -> list[Batch]:
    """Batches as ours, cut, sorted and on the device."""
    windows = tagger.pieces.encode(s.tokens for s in sentences)
    chunks = [windows[i : i + CHUNK] for i in range(0, len(windows), CHUNK)]
    groups = [
        [chunk[i] for i in group]
        for chunk in chunks
        for group in by_length(chunk, BUDGET[tagger.device.type])
    ]
    return [spread(group, tagger.device)[0] for group in groups]


def bare(tagger: Tagger, batches: list[Batch]) -> None:
    """The encoder over each, by the path that ours takes; nothing is made of what comes out."""

    def forward(batch: Batch) -> None:
        with torch.inference_mode():
            tagger.network.hidden(batch)

    with autocast(tagger.device):
        side_by_side(forward, batches, tagger.device)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """What one pass takes, the device's part included."""
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[3453])
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument(
        "--data",
        default=None,
        help="a folder with CoNLL-03's train.txt and test.txt; the gazette without it",
    )
    args = parser.parse_args()
    corpus = load(args.data)
    tagger = Tagger(settings=Settings(epochs=5)).fit(
        corpus.train[:200], np.random.default_rng(0), corpus.tags
    )
    device, rows = tagger.device, []
    everything = [s.unlabeled() for s in [*corpus.test, *corpus.train]]
    for n in args.sizes:
        sentences = everything[:n]
        n = len(sentences)
        ours(tagger, everything[-100:]), per_sentence(tagger, everything[-100:])  # warm
        tagger.pieces.cached_windows.clear()
        cold = seconds(partial(ours, tagger, sentences), device)
        batches = ready(tagger, sentences)
        bare(tagger, batches)
        works = (
            partial(ours, tagger, sentences),
            partial(per_sentence, tagger, sentences[:_PEER]),
            partial(bare, tagger, batches),
        )
        us, them, limit = np.median(
            [[seconds(work, device) for work in works] for _ in range(args.passes)], axis=0
        )
        them *= n / min(n, _PEER)
        short = [
            s for s in sentences[:1000] if len(s) <= 30
        ]  # the peer cuts what is too long, ours reads it in windows
        apart = np.abs(ours(tagger, short) - per_sentence(tagger, short)).max()
        rows.append(
            [corpus.name, n, f"{n / us:.0f}/s", f"{n / cold:.0f}/s", f"{n / them:.0f}/s",
             f"{them / us:.1f}×", f"{n / limit:.0f}/s", f"{limit / us:.0%}", f"{apart:.0e}"]
        )  # fmt: skip
        where = (
            torch.cuda.get_device_name()
            if device.type == "cuda"
            else f"CPU, {torch.get_num_threads()} threads"
        )
        record(
            "score", f"{device.type}, {n} sentences",
            n / us, "1/s", peer=n / them, limit=n / limit,
            note=f"{where}; {limit / us:.0%} of the limit; first pass {n / cold:.0f}/s; "
            f"scores apart at most {apart:.0e}",
        )  # fmt: skip
    show(
        [
            "data",
            "sentences",
            "seqmix",
            "first pass",
            "per sentence",
            "ratio",
            "bare forward",
            "of limit",
            "scores apart",
        ],
        rows,
    )
