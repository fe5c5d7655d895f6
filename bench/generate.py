"""Generation: SeqMix against Algorithm 2 read literally (algorithm2.py), at equal output.

python bench/generate.py [--n 40] [--sentences 200] [--width 768] [--large]

The literal loop is slow, so nearest-token look-up is timed on a few positions of it. By default
table and language model have the shapes of bert-base-cased and GPT-2 small with random weights
(what is timed is arithmetic, not taste); `--starter` uses the embedded models.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from algorithm2 import generate, nearest_token, perplexity
from common import load, record, show
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.pairing import Pairing
from seqmix.augment.score_range import ScoreRange
from seqmix.augment.seqmix import SeqMix
from seqmix.augment.settings import Mixing
from seqmix.augment.table import Table
from seqmix.augment.table_sources import encoder_table, vocabulary_table
from seqmix.starter.loader import load_language_model, starter_tokenizer


def random_table(width: int) -> Table:
    """28,996 entries of the starter's vocabulary with random vectors."""
    tokenizer = starter_tokenizer()
    words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return vocabulary_table(
        words,
        np.random.default_rng(0).standard_normal((len(words), width)).astype(np.float32),
        tokenizer,
    )


def random_lm(folder: str, width: int, layers: int) -> str:
    """A GPT-2 of this shape, whose scores lie near the size of the vocabulary.

    The range is set to accept about half.
    """
    torch.manual_seed(0)
    tokenizer = starter_tokenizer()
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=width,
        n_layer=layers,
        n_head=width // 64,
        n_positions=256,
        bos_token_id=101,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=40)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument(
        "--starter",
        action="store_true",
        help="the embedded models instead of random ones of GPT-2's shape",
    )
    parser.add_argument(
        "--positions",
        type=int,
        default=5,
        help="positions the literal nearest-token loop is timed on",
    )
    parser.add_argument("--variants", nargs="+", default=["sub", "label", "whole"])
    parser.add_argument("--data", default=None)
    args = parser.parse_args()
    corpus = load(args.data)
    sentences = corpus.train[: args.sentences]
    with tempfile.TemporaryDirectory() as folder:
        name = "starter" if args.starter else random_lm(folder, args.width, args.layers)
        table = encoder_table() if args.starter else random_table(args.width)
        rows = [compare(sentences, variant, table, name, args) for variant in args.variants]
    look_up(table, args.positions)
    show(
        [
            "variant",
            "asked",
            "made",
            "seqmix",
            "literal",
            "ratio",
            "same output",
            "scored",
            "literal scored",
        ],
        rows,
    )


def compare(sentences, variant: str, table: Table, name: str, args) -> list[object]:
    """One variant both ways, on the same pairs and weights."""
    density = 0.2 if variant == "whole" else 0.6
    real = Perplexity(name).scores(sentences[:50])
    limits = ScoreRange(0, 500.0 if args.starter else float(np.quantile(real, 0.6)))
    judge = Perplexity(name)
    judge.scores(sentences[:1])  # loads the model
    table.nearest(table.vectors[1000:1001].astype(float), [set()])  # and the table
    mixer = SeqMix(
        variant, 5, density, score_range=limits, table=table, discriminator=judge, max_uses=10**9
    )
    start = time.perf_counter()
    made = mixer.augment(sentences, args.n, np.random.default_rng(0))
    ours = time.perf_counter() - start

    rng = np.random.default_rng(0)
    seed = int(rng.integers(2**62))
    pairs = []
    for pair in Pairing(Mixing(variant, 5, density)).pairs(
        sentences, lambda parent: True, set(), rng, table.vector
    ):
        pairs.append(pair)
        if len(pairs) == made.counts.get("pairs", 0):
            break
    model, tokenizer = load_language_model(name)
    scored = 0

    def score(text: str) -> float:
        nonlocal scored
        scored += 1
        return perplexity(
            text,
            model,
            tokenizer,
            tokenizer.bos_token_id if tokenizer.bos_token_id is not None else 101,
        )

    # the literal loop pays for every position in full;
    # the look-up itself is extrapolated from `--positions` timed ones below
    start = time.perf_counter()
    fast = _Cached(table)
    expected = generate(
        sentences, pairs, [mixer._weight(pair, seed) for pair in pairs],
        table.vectors, table.words, table.starts, table.split, score,
        limits.low, limits.high, args.n + repeats(made), variant == "whole", fast.nearest,
    )  # fmt: skip
    literal = (
        time.perf_counter()
        - start
        - fast.seconds
        + fast.asked * literal_look_up(table, args.positions)
    )
    same = [one.sentence.tokens for one in made] == list(
        dict.fromkeys(tokens for tokens, _, _ in expected)
    )[: len(made)]
    note = (
        f"peer: the literal reading of the paper, its look-up timed on {args.positions} positions; "
        f"same sentences: {same}"
    )
    record("generate", f"{variant}, {args.n} sentences", ours, "s", peer=literal, note=note)
    return [
        variant,
        args.n,
        len(made),
        f"{ours:.2f} s",
        f"{literal:.1f} s",
        f"{literal / ours:.0f}×",
        same,
        made.counts.get("scored", 0),
        scored,
    ]


def repeats(made) -> int:
    """Sentences the literal loop keeps twice and ours once, as they repeat in the corpus."""
    return made.counts.get("repeated", 0)


class _Cached:
    """Stands in for the literal nearest-token loop where only its answer is wanted, and counts."""

    def __init__(self, table: Table) -> None:
        self.table, self.asked, self.seconds = table, 0, 0.0

    def nearest(self, mixed, vectors, admissible, parents):
        start = time.perf_counter()
        ids, distances = self.table.nearest(mixed[None], [set(parents)])
        self.asked += 1
        self.seconds += time.perf_counter() - start
        return int(ids[0]), float(distances[0])


def literal_look_up(table: Table, positions: int) -> float:
    """Seconds of one literal look-up."""
    if not hasattr(literal_look_up, "known"):
        rng = np.random.default_rng(1)
        queries = [
            table.vectors[rng.integers(2000, 20000, 2)].astype(float).mean(0)
            for _ in range(positions)
        ]
        start = time.perf_counter()
        for query in queries:
            nearest_token(query, table.vectors, table.starts, [])
        literal_look_up.known = (time.perf_counter() - start) / positions
    return literal_look_up.known


def look_up(table: Table, positions: int) -> None:
    """Nearest token alone: one blocked product for all positions against the literal loop."""
    rng = np.random.default_rng(2)
    queries = np.stack(
        [table.vectors[rng.integers(2000, 20000, 2)].astype(float).mean(0) for _ in range(500)]
    )
    table.nearest(queries[:10], [set()] * 10)
    start = time.perf_counter()
    found, _ = table.nearest(queries, [set()] * len(queries))
    ours = (time.perf_counter() - start) / len(queries)
    literal = literal_look_up(table, positions)
    same = all(
        found[i] == nearest_token(queries[i], table.vectors, table.starts, [])[0]
        for i in range(positions)
    )
    show(
        ["nearest token", "seqmix", "literal", "ratio", "same"],
        [
            [
                f"{len(table)} × {table.vectors.shape[1]}",
                f"{1e3 * ours:.2f} ms",
                f"{1e3 * literal:.0f} ms",
                f"{literal / ours:.0f}×",
                same,
            ]
        ],
    )


if __name__ == "__main__":
    main()
