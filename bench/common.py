"""What the benchmarks share: the data, and one way to print a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seqmix.data import formats
from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet

_SHARED = Path(__file__).parents[2] / "shared" / "data" / "conll03"


@dataclass(frozen=True)
class Corpus:
    """Shuffled training sentences, test sentences and their tag set."""

    name: str
    train: list[Sentence]
    test: list[Sentence]
    tags: TagSet


def load(folder: str | None) -> Corpus:
    """CoNLL-03 from the folder, or from its usual place beside the repository; the gazette when it is not there."""
    place = Path(folder) if folder else _SHARED
    if (place / "train.txt").exists():
        name, train, test = "conll03", list(formats.read(place / "train.txt")), list(formats.read(place / "test.txt"))
    else:
        name, train, test = "gazette", sample("gazette:train"), sample("gazette:test")
    order = np.random.default_rng(0).permutation(len(train))
    return Corpus(name, [train[i] for i in order], test, TagSet.of(train))


def show(head: list[str], rows: list[list[object]]) -> None:
    """Print one aligned table in Markdown."""
    table = [head, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for number, row in enumerate(table):
        print("| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
