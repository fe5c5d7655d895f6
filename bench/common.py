"""What the benchmarks share: data, and more like it; a table; all figures (results/bench.csv)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
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
    """CoNLL-03 from the folder or its usual place beside the repository, or else the gazette."""
    place = Path(folder) if folder else _SHARED
    if (place / "train.txt").exists():
        name, train, test = (
            "conll03",
            list(formats.read(place / "train.txt")),
            list(formats.read(place / "test.txt")),
        )
    else:
        name, train, test = "gazette", sample("gazette:train"), sample("gazette:test")
    order = np.random.default_rng(0).permutation(len(train))
    return Corpus(name, [train[i] for i in order], test, TagSet.of(train))


def varied(sentences: Sequence[Sentence], n: int, repeats: float = 0.0) -> Iterator[Sentence]:
    """n sentences like those given, a share of which repeats earlier ones from anywhere.

    They are real ones with two tokens from elsewhere in each.
    """
    words = [token for sentence in sentences for token in sentence.tokens]
    for number in range(n):
        lot, place = _lots(number)
        earlier = place % (number + 1) if lot < repeats * 2**32 else number
        yield Sentence(f"s{number}", _like(sentences, words, earlier))


def _like(sentences: Sequence[Sentence], words: Sequence[str], number: int) -> tuple[str, ...]:
    """The tokens of sentence `number`, which follow from the number alone, so they can repeat."""
    pick, first = _lots(number + 1_000_000_007)
    second, third = _lots(pick + first)
    tokens = list(sentences[pick % len(sentences)].tokens)
    tokens[first % len(tokens)] = words[second % len(words)]
    tokens[third % len(tokens)] = words[(first ^ third) % len(words)]
    return tuple(tokens)


def _lots(number: int) -> tuple[int, int]:
    """Two numbers below 2³² that look random (the finalizer of SplitMix64).

    numpy's generators are slow one number at a time.
    """
    mixed = number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 31
    return mixed >> 32, mixed & 0xFFFFFFFF


def show(head: list[str], rows: list[list[object]]) -> None:
    """Print one aligned table in Markdown."""
    table = [head, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for number, row in enumerate(table):
        print(
            "| "
            + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            + " |"
        )
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
    """Write down a figure of ours, beside a peer's and the best there could be in the same run.

    An earlier one of the case goes. The ratio is ours over the peer's, or over the limit where
    there is no peer. The unit says whether less (s) or more (1/s) is better.
    """
    against = peer if peer is not None else limit
    ratio = us / against if against else None
    row = {
        "bench": bench,
        "case": case,
        "us": us,
        "peer": peer,
        "limit": limit,
        "unit": unit,
        "ratio": ratio,
        "note": note,
    }
    rows = (
        list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
        if table.exists()
        else []
    )
    others = [other for other in rows if (other["bench"], other["case"]) != (bench, case)]
    told = {
        name: f"{value:.5g}" if isinstance(value, (int, float)) else value
        for name, value in row.items()
    }
    with replacing(table) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*others, told], key=lambda one: one["bench"]))
