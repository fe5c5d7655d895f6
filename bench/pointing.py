"""How many places that the starter's type head points at are names, and how many names it finds.

python -m bench.pointing FILE [--limit 400]
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from seqmix.data import formats
from seqmix.data.spans import spans
from seqmix.starter.pointing import Pointer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="a labeled file")
    parser.add_argument("--limit", type=int, default=400, help="sentences, the first of the file")
    options = parser.parse_args()
    labeled = (sentence for sentence in formats.read(options.file) if len(sentence))
    sentences = list(islice(labeled, options.limit))
    right = places = names = 0
    for sentence, pointed in zip(sentences, Pointer().names(sentences), strict=True):
        gold = {(span.start, span.end) for span in spans(sentence.tags)}
        right, places, names = (
            right + len(gold & {*pointed}),
            places + len(pointed),
            names + len(gold),
        )
    print(f"{len(sentences)} sentences: precision {right / places:.3f}, recall {right / names:.3f}")


if __name__ == "__main__":
    main()
