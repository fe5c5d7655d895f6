r"""What plain taggers say of four corpora, kept in a folder for bench/certify.py.

python bench/predicted.py FOLDER [--data ../shared/data] [--steps 500] [--most 8000] \
    [--corpora conll03 wnut17 genia2011 wikigold]

Each corpus is cut in two. The labeled sentences are of the first half: drawn at random, or the
least certain of a tagger that was trained on 100 of them. The second half is what the tagger has
not seen: of each sentence the ten most probable taggings, which of them is right, and how unsure
the first tagger was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from common import Corpus
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.tagger import Settings, Tagger

FILES = {
    "conll03": ("train.txt",),
    "wnut17": ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"),
    "genia2011": ("train.tsv",),
    "wikigold": ("wikigold.conll.txt",),
}
LABELED = {"wikigold": 400}  # of 1,696 sentences; 700 elsewhere
FIRST = 100  # labeled before the others are chosen
BATCH = 8  # sentences per step
PATHS = 10


def read(folder: Path, name: str, most: int) -> Corpus:
    """Each text of a corpus once, in random order, at most so many."""
    sentences = [s for file in FILES[name] for s in formats.read(folder / name / file) if len(s)]
    once = list({s.tokens: s for s in sentences}.values())
    order = np.random.default_rng(0).permutation(len(once))
    shuffled = [once[i] for i in order[:most]]
    return Corpus(name, shuffled, [], TagSet.of(shuffled))


def trained(sentences: Sequence[Sentence], tags: TagSet, steps: int) -> Tagger:
    """A tagger with a CRF, trained plainly."""
    settings = Settings(steps=steps, batch_size=BATCH)
    return Tagger(head="crf", settings=settings).fit(sentences, np.random.default_rng(0), tags)


def doubtful(tagger: Tagger, sentences: Sequence[Sentence]) -> list[float]:
    """One minus the probability of each sentence's best tagging, by token."""
    best = tagger.best_paths([s.unlabeled() for s in sentences])
    return [
        1.0 - paths[0].probability ** (1 / len(s)) for s, paths in zip(sentences, best, strict=True)
    ]


def lines(tagger: Tagger, sentences: Sequence[Sentence], unsure: Sequence[float]) -> Iterator[str]:
    """One line of JSON for each sentence."""
    best = tagger.best_paths([s.unlabeled() for s in sentences], n=PATHS)
    for sentence, paths, doubt in zip(sentences, best, unsure, strict=True):
        taggings = [path.tags for path in paths]
        right = taggings.index(sentence.tags) if sentence.tags in taggings else -1
        found = [float(f"{path.probability:.6g}") for path in paths]
        yield json.dumps({"tokens": len(sentence), "paths": found, "right": right, "doubt": doubt})


def write(corpus: Corpus, active: bool, folder: Path, steps: int) -> None:
    """Train, predict the second half, and write what came out."""
    half, n = len(corpus.train) // 2, LABELED.get(corpus.name, 700)
    first, unseen = corpus.train[:half], corpus.train[half:]
    labeled, doubts, least = first[:n], [0.0] * len(unseen), 1.0
    if active:
        start = trained(first[:FIRST], corpus.tags, steps // 4)
        scores = doubtful(start, first[FIRST:])
        order = np.argsort(scores)[::-1][: n - FIRST]
        labeled = first[:FIRST] + [first[FIRST + i] for i in order]
        doubts, least = doubtful(start, unseen), scores[order[-1]]
    tagger = trained(labeled, corpus.tags, steps)
    head = {"corpus": corpus.name, "labeled": n, "active": active, "asked_from": least}
    kind = "active" if active else "random"
    text = "\n".join([json.dumps(head), *lines(tagger, unseen, doubts)])
    (folder / f"{corpus.name}-{kind}.jsonl").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--corpora", nargs="+", default=list(FILES), choices=FILES)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--most", type=int, default=8000, help="sentences of a corpus")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.corpora:
        corpus = read(args.data, name, args.most)
        for active in (False, True):
            start = time.time()
            write(corpus, active, args.folder, args.steps)
            print(f"{name} {'active' if active else 'random'}: {time.time() - start:.0f} s")
