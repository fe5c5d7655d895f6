"""Split a corpus that comes as one file into train, dev and test.

    python scripts/split_corpus.py wikigold.conll.txt OUT

A sentence's part hangs on its words alone, so copies of a sentence never lie on both sides and the
split is the same everywhere.
"""

from __future__ import annotations

import argparse
from hashlib import blake2b
from pathlib import Path

from seqmix.data import formats
from seqmix.data.sentence import Sentence, unique_ids


def part_of(sentence: Sentence, dev: float, test: float) -> str:
    """train, dev or test."""
    place = (
        int.from_bytes(blake2b("\0".join(sentence.tokens).encode(), digest_size=8).digest()) / 2**64
    )
    return "test" if place < test else "dev" if place < test + dev else "train"


def split(file: Path, out: Path, dev: float = 0.15, test: float = 0.25) -> dict[str, int]:
    """Write train.conll, dev.conll and test.conll; how many sentences each has."""
    parts: dict[str, list[Sentence]] = {"train": [], "dev": [], "test": []}
    for sentence in unique_ids(formats.read(file)):
        parts[part_of(sentence, dev, test)].append(sentence)
    out.mkdir(parents=True, exist_ok=True)
    for name, sentences in parts.items():
        formats.write(sentences, out / f"{name}.conll", "conll")
    return {name: len(sentences) for name, sentences in parts.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dev", type=float, default=0.15)
    parser.add_argument("--test", type=float, default=0.25)
    args = parser.parse_args()
    print(split(args.file, args.out, args.dev, args.test))
