r"""Where the CPU time of one sentence of 25 tokens goes, on the default path.

OMP_NUM_THREADS=1 python bench/one_sentence.py [--sentences 60] [--rounds 5] \
    [--data ../shared/data/conll03]

The products and the attention of a sentence are done again alone, with tensors of the same shapes;
what the network takes besides is other operations of torch and the modules around them. Decoding is
what happens to the scores; the rest is Python around all of it. New words are tokenized, known ones
are remembered. Each figure is the median over sentences of the least CPU time of a few rounds, in
which all parts take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from common import load, record, show
from seqmix.data.sentence import Sentence
from seqmix.tagger import Settings, Tagger, on_cpu
from seqmix.tagger.batches import Batch, spread
from seqmix.tagger.on_cpu import OneDNNLinear

TOKENS = 25
Part = Callable[[], object]


def sentences_of(data: str | None, n: int) -> tuple[Tagger, list[Sentence]]:
    """An untrained tagger, which takes the time of a trained one, and sentences of 25 tokens."""
    corpus = load(data)
    tagger = Tagger(settings=Settings()).start(corpus.tags, np.random.default_rng(0))
    words = [word for sentence in corpus.test for word in sentence.tokens]
    cuts = [tuple(words[i : i + TOKENS]) for i in range(0, n * TOKENS, TOKENS)]
    return tagger, [Sentence(f"s{i}", tokens) for i, tokens in enumerate(cuts)]


def batch_of(tagger: Tagger, sentence: Sentence) -> Batch:
    """What the network gets."""
    return spread(tagger.pieces.encode([sentence.tokens]), tagger.device)[0]


def calls_of(tagger: Tagger, batch: Batch) -> tuple[list[Part], list[Part]]:
    """The products and the attention of one sentence, to be done again alone."""
    products: list[Part] = []
    attention: list[Part] = []
    attend = on_cpu.scaled_dot_product_attention

    multiply = OneDNNLinear.multiply

    def multiplied(layer: OneDNNLinear, inputs: torch.Tensor, then: str = "none") -> torch.Tensor:
        drawn = torch.randn(inputs.shape)
        products.append(lambda: multiply(layer, drawn, then))
        return multiply(layer, inputs, then)

    def attended(*inputs: torch.Tensor, **options: object) -> torch.Tensor:
        attention.append(lambda: attend(*inputs, **options))
        return attend(*inputs, **options)

    OneDNNLinear.multiply, on_cpu.scaled_dot_product_attention = multiplied, attended
    try:
        tagger.network(batch)
    finally:
        OneDNNLinear.multiply, on_cpu.scaled_dot_product_attention = multiply, attend
    return products, attention


def parts_of(tagger: Tagger, sentence: Sentence) -> dict[str, Part]:
    """The whole, and its parts."""
    pieces, batch = tagger.pieces, batch_of(tagger, sentence)
    products, attention = calls_of(tagger, batch)

    def cut() -> None:
        pieces.cached_windows.clear(), pieces.cached_pieces.clear()
        pieces.encode([sentence.tokens])

    return {
        "whole": lambda: [*tagger.predict([sentence])],
        "network": lambda: tagger.network(batch),
        "products": lambda: [call() for call in products],
        "attention": lambda: [call() for call in attention],
        "laid out": lambda: batch_of(tagger, sentence),
        "cut": cut,
    }


def least(parts: dict[str, Part], rounds: int) -> dict[str, float]:
    """The least CPU time of each part in milliseconds; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in parts}
    with torch.inference_mode():
        for _ in range(rounds):
            for name, part in parts.items():
                part()
                start = time.thread_time()
                part()
                times[name].append(1000 * (time.thread_time() - start))
    return {name: min(each) for name, each in times.items()}


def rows_of(part: dict[str, float]) -> dict[str, float]:
    """What adds up to the whole, in milliseconds."""
    rows = {
        "matrix products": part["products"],
        "attention": part["attention"],
        "other operations of the network": part["network"] - part["products"] - part["attention"],
        "laying out the batch": part["laid out"],
        "decoding, and Python around it": part["whole"] - part["network"] - part["laid out"],
    }
    return {
        **rows,
        "in all, words known": part["whole"],
        "tokenizing 25 new words, besides": part["cut"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", help="a folder with CoNLL-03's files; the gazette without it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tagger, sentences = sentences_of(args.data, args.sentences)
    for sentence in sentences:  # so that the words are known and the weights laid out
        [*tagger.predict([sentence])]
    with torch.inference_mode():
        each = [rows_of(least(parts_of(tagger, s), args.rounds)) for s in sentences]
    medians = {name: float(np.median([rows[name] for rows in each])) for name in each[0]}
    whole = medians["in all, words known"]
    show(
        ["", "CPU", "of all"],
        [[name, f"{ms:.2f} ms", f"{ms / whole:.0%}"] for name, ms in medians.items()],
    )
    for name, ms in medians.items():
        record("one sentence", name, ms / 1000, "s", note=f"CPU time, one thread; {ms / whole:.0%}")


if __name__ == "__main__":
    main()
