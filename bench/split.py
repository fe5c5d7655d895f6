"""How well raw text is cut into sentences: boundaries of gold corpora, joined into running text.

    python -m bench.split --data FILE... [--peer PYTHON]

Sentences that end with . ! or ? are joined by spaces, 20 at a time, after spaces before punctuation
are taken out. Precision, recall and F1 are of the places between two sentences. `--peer` is a
Python with pysbd and syntok, which are run on the same text.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from seqmix.data import formats
from seqmix.data.sentence_ends import sentence_spans

_PEERS = """
import json, sys, time
import pysbd
from syntok import segmenter
texts, segment = json.load(sys.stdin), pysbd.Segmenter(language="en", clean=False, char_span=True)
def pysbd_ends(text):
    return [span.start + len(span.sent.rstrip()) for span in segment.segment(text)]
def syntok_ends(text):
    return [s[-1].offset + len(s[-1].value) for p in segmenter.analyze(text) for s in p]
result = {}
for name, ends in (("pysbd", pysbd_ends), ("syntok", syntok_ends)):
    start = time.perf_counter()
    result[name] = [[ends(text) for text in texts], time.perf_counter() - start]
json.dump(result, sys.stdout)
"""
Ends = list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", type=Path, required=True)
    parser.add_argument("--peer", type=Path)
    given = parser.parse_args()
    print("corpus | splitter | precision | recall | F1 | characters per second")
    for path in given.data:
        texts, gold = joined(path)
        size = sum(map(len, texts))
        ways = {"seqmix": timed(seqmix_ends, texts), "regex": timed(regex_ends, texts)}
        if given.peer:
            output = subprocess.run(
                [given.peer, "-c", _PEERS],
                input=json.dumps(texts), text=True, check=True, capture_output=True,
            ).stdout  # fmt: skip
            ways |= {name: (ends, seconds) for name, (ends, seconds) in json.loads(output).items()}
        for name, (ends, seconds) in ways.items():
            right, said, there = compared(ends, gold, texts)
            precision, recall = right / said, right / there
            f1 = 2 * right / (said + there)
            row = " | ".join(f"{100 * share:.1f}" for share in (precision, recall, f1))
            print(f"{path.name} | {name} | {row} | {size / seconds:,.0f}", flush=True)


def joined(path: Path) -> tuple[list[str], Ends]:
    """Return running texts, and where their sentences end."""
    plain = (surface(s.tokens) for s in formats.read(path) if s.tokens[-1] in (".", "!", "?"))
    texts, gold = [], []
    for sentences in groups_of(20, plain):
        ends, length = [], 0
        for sentence in sentences:
            length += len(sentence)
            ends.append(length)
            length += 1
        texts.append(" ".join(sentences))
        gold.append(ends)
    return texts, gold


def groups_of(size: int, items: Iterable[str]) -> Iterator[list[str]]:
    """Yield lists of `size` items; the last may be shorter."""
    rest = iter(items)
    while group := list(islice(rest, size)):
        yield group


def surface(tokens: Iterable[str]) -> str:
    """Return tokens as people write them, more or less."""
    text = re.sub(r" ([.,;:!?%)\]}]|'s\b|n't\b)", r"\1", " ".join(tokens))
    return re.sub(r"([(\[{$]) ", r"\1", text)


def seqmix_ends(text: str) -> list[int]:
    """Return where sentences end, as `seqmix init` cuts them."""
    return [end for _, end in sentence_spans(text)]


def regex_ends(text: str) -> list[int]:
    """Return where sentences end for whoever splits at . ! and ? before a space and a capital."""
    return [match.end() for match in re.finditer(r"[.!?](?= [A-Z]|$)", text)]


def timed(ends: Callable[[str], list[int]], texts: list[str]) -> tuple[Ends, float]:
    """Return the ends of each text, and the seconds that took."""
    start = time.perf_counter()
    return [ends(text) for text in texts], time.perf_counter() - start


def compared(ends: Ends, gold: Ends, texts: list[str]) -> tuple[int, int, int]:
    """Return how many ends inside the texts are right, were said, and are there."""
    inside = [
        ({end for end in one if end < len(text)}, {end for end in other if end < len(text)})
        for one, other, text in zip(ends, gold, texts, strict=True)
    ]
    return (
        sum(len(said & there) for said, there in inside),
        sum(len(said) for said, _ in inside),
        sum(len(there) for _, there in inside),
    )


if __name__ == "__main__":
    main()
