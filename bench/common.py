"""What the benchmarks share: the data, one way to print a table, and the table of all their figures, results/bench.csv."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seqmix.data import formats
from seqmix.data.files import replacing
from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet

_SHARED = Path(__file__).parents[2] / "shared" / "data" / "conll03"
_TABLE = Path(__file__).parents[1] / "results" / "bench.csv"
_COLUMNS = ("bench", "case", "us", "peer", "limit", "unit", "ratio", "note")


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


def record(
    bench: str,
    case: str,
    us: float,
    unit: str,
    *,
    peer: float | None = None,
    limit: float | None = None,
    note: str = "",
    table: Path = _TABLE,
) -> None:
    """Write down a figure of ours, beside a peer's and the best there could be, measured in the same run; an earlier one of the case goes.

    The ratio is ours over the peer's, or over the limit where there is no peer. The unit says whether less (s) or more (1/s) is better.
    """
    against = peer if peer is not None else limit
    ratio = us / against if against else None
    row = {"bench": bench, "case": case, "us": us, "peer": peer, "limit": limit, "unit": unit, "ratio": ratio, "note": note}
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines())) if table.exists() else []
    others = [other for other in rows if (other["bench"], other["case"]) != (bench, case)]
    told = {name: f"{value:.5g}" if isinstance(value, (int, float)) else value for name, value in row.items()}
    with replacing(table) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*others, told], key=lambda one: one["bench"]))
