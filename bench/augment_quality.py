r"""What SeqMix makes of a few hundred sentences: how many, how clean, and whether length matters.

python bench/augment_quality.py --data FOLDER [--sentences 200] [--rate 0.2] [--seeds 10] \
    [--cases "sub,whole 0,500"]

A case is a variant, `+spans` for windows on spans, and a score range unless it is the default.
Stumps are new words that are a piece of a parent's word the table does not have; symbols are new
words with a character, or marks without a letter or digit, that the whole training text does not
have. Thirds are by the length of the parent that was rewritten, over the candidates that were
scored: they show whether the score range looks at that length.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from common import load
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.seqmix import SeqMix
from seqmix.augment.settings import Mixing, base_of
from seqmix.augment.table import Table
from seqmix.augment.table_sources import encoder_table
from seqmix.data.augmented import Augmented
from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence


@dataclass
class Figures:
    """Of one case, all seeds together."""

    made: list[int] = field(default_factory=list)
    asked: int = 0
    words: int = 0
    stumps: int = 0
    symbols: int = 0
    illegal: int = 0  # among what was made
    dropped: int = 0  # for illegal tags
    candidates: int = 0
    lengths: list[tuple[int, bool]] = field(
        default_factory=list
    )  # of the parent of each candidate scored, and whether it was kept

    def thirds(self) -> tuple[list[float], list[float]]:
        """The two lengths between the thirds, and the share kept in each."""
        length, kept = (np.array(column) for column in zip(*self.lengths, strict=True))
        low, high = np.quantile(length, [1 / 3, 2 / 3])
        groups = (length <= low, (length > low) & (length <= high), length > high)
        return [low, high], [
            float(kept[group].mean()) if group.any() else float("nan") for group in groups
        ]


def look(
    figures: Figures,
    one: Augmented,
    parents: Sequence[Sentence],
    table: Table,
    known: set[str],
    letters: set[str],
) -> None:
    """Count the new words of one sentence."""
    start, end = one.lineage.windows[one.lineage.into]
    for t in range(end - start):
        new = one.sentence.tokens[start + t]
        words = [
            parent.tokens[window[0] + t]
            for parent, window in zip(parents, one.lineage.windows, strict=True)
        ]
        pieces = {
            table.words[id].lower()
            for word in words
            if len(table.split(word)) > 1
            for id in table.split(word)
        }
        figures.words += 1
        figures.stumps += new.lower() in pieces
        figures.symbols += not set(new) <= letters or (
            new not in known and not any(letter.isalnum() for letter in new)
        )
    figures.illegal += not is_legal([str(tag) for tag in one.sentence.hardened().tags])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=None)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--rate", type=float, default=0.2)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--cases",
        nargs="*",
        default=["sub", "label", "whole", "sub+spans", "label+spans", "whole 0,500"],
    )
    options = parser.parse_args()
    train = list({sentence.tokens: sentence for sentence in load(options.data).train}.values())
    known = {token for sentence in train for token in sentence.tokens}
    letters = {letter for token in known for letter in token}
    table = encoder_table()
    judges = {base: Perplexity(base=base) for base in ("e", "2")}
    print(
        "| case | made of asked, fewest | stumps % | symbols % | illegal % (dropped) "
        "| kept by thirds of length | ratio |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for case in options.cases:
        name, _, text = case.partition(" ")
        variant, _, spans = name.partition("+")
        limits = text or Mixing().score_range
        mixer = SeqMix(
            variant,
            windows="spans" if spans else "fixed",
            score_range=limits,
            table=table,
            discriminator=judges[base_of(variant)],
            trace=True,
        )
        figures = Figures()
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            sentences = [train[i] for i in rng.permutation(len(train))[: options.sentences]]
            by_id = {sentence.id: sentence for sentence in sentences}
            made = mixer.augment(sentences, round(options.rate * len(sentences)), rng)
            figures.made.append(len(made))
            figures.asked = made.asked
            figures.dropped += made.counts.get("illegal tags", 0)
            figures.candidates += made.counts.get("illegal tags", 0) + made.counts.get("scored", 0)
            for one in made:
                look(figures, one, [by_id[id] for id in one.lineage.parents], table, known, letters)
            figures.lengths += [(len(one.sentence), one.kept) for one in (*made, *made.rejected)]
        between, shares = figures.thirds()
        row = [
            case,
            f"{np.mean(figures.made):.1f} of {figures.asked}, {min(figures.made)}",
            f"{100 * figures.stumps / max(1, figures.words):.1f}",
            f"{100 * figures.symbols / max(1, figures.words):.1f}",
            f"{100 * figures.illegal / max(1, sum(figures.made)):.1f} "
            f"({100 * figures.dropped / max(1, figures.candidates):.1f})",
            f"{shares[0]:.2f} (≤ {between[0]:.0f} tokens), {shares[1]:.2f}, "
            f"{shares[2]:.2f} (> {between[1]:.0f})",
            f"{max(shares[0], shares[2]) / max(1e-9, min(shares[0], shares[2])):.1f}",
        ]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
