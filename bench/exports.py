"""Exported taggers against the taggers they came from: spans, tags, F1 and sentences per second.

python bench/exports.py [--taggers FOLDER] [--data ../shared/data/conll03] [--sentences 500]

FOLDER holds taggers named CORPUS-HEAD (gazette-crf, conll03-linear, …); those it lacks are trained
for 200 steps.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from common import Corpus, load, record, show
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.export.onnx import export_onnx
from seqmix.onnx_runtime.tagger import OnnxTagger
from seqmix.tagger import Settings, Tagger

Tags = list[tuple[str, ...]]
Predict = Callable[[Sequence[Sentence]], Tags]
ROUNDS = 3  # of which the fastest counts; the models take turns


def predict(tagger: Tagger | OnnxTagger, sentences: Sequence[Sentence]) -> Tags:
    return [paths[0].tags for paths in tagger.best_paths(sentences)]


def to_onnx(tagger: Tagger, folder: Path, precision: str) -> Predict:
    file = folder / f"{precision}.onnx"
    export_onnx(tagger, file, precision)
    return partial(predict, OnnxTagger(file, torch.get_num_threads()))


TARGETS: dict[str, Callable[[Tagger, Path], Predict]] = {
    "onnx": partial(to_onnx, precision="float32"),
    "onnx-int8": partial(to_onnx, precision="int8"),
}


def tagger_of(folder: Path, corpus: Corpus, head: str) -> Tagger:
    saved = folder / f"{corpus.name}-{head}"
    if not saved.is_dir():
        tagger = Tagger(head=head, settings=Settings(steps=200), device="cpu")
        tagger.fit(corpus.train[:2000], np.random.default_rng(0), corpus.tags).save(saved)
    return Tagger.load(saved, "cpu")


def timed(models: dict[str, Predict], sentences: Sequence[Sentence]) -> dict[str, float]:
    """The fastest of a few rounds in seconds; the models take turns, as the machine is shared."""
    best = dict.fromkeys(models, float("inf"))
    for _ in range(ROUNDS):
        for name, model in models.items():
            start = time.perf_counter()
            model(sentences)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def differences(ours: Tags, theirs: Tags, sentences: Sequence[Sentence]) -> Iterable[str]:
    """The spans that only one of the two has, one line each."""
    for a, b, sentence in zip(ours, theirs, sentences, strict=True):
        for span in sorted(set(spans(a)) ^ set(spans(b)), key=lambda span: span.start):
            who = "tagger" if span in spans(a) else "export"
            text = " ".join(sentence.tokens[span.start : span.end])
            yield f"  {sentence.id}: {text!r} {span.type}, {who} only"


def rows_of(corpus: Corpus, head: str, args: argparse.Namespace) -> list[list[object]]:
    tagger = tagger_of(args.taggers, corpus, head)
    test = corpus.test[: args.sentences]
    bare = [sentence.unlabeled() for sentence in test]
    gold = [sentence.tags for sentence in test]
    with tempfile.TemporaryDirectory() as folder:
        models = {"tagger": partial(predict, tagger)}
        models |= {name: target(tagger, Path(folder)) for name, target in TARGETS.items()}
        seconds = timed(models, bare)
    tags = {name: model(bare) for name, model in models.items()}
    f1 = {name: 100 * score(gold, predicted).f1 for name, predicted in tags.items()}
    rows: list[list[object]] = []
    for name in TARGETS:
        changed = [*differences(tags["tagger"], tags[name], bare)]
        pairs = zip(tags["tagger"], tags[name], strict=True)
        tokens = [a != b for left, right in pairs for a, b in zip(left, right, strict=True)]
        if changed and len(changed) <= args.show:
            print(f"{corpus.name}, {head}, {name}:", *changed, sep="\n")
        ratio = seconds["tagger"] / seconds[name]
        rows.append(
            [corpus.name, head, name, len(changed), sum(spans_of(tags["tagger"])), sum(tokens),
             len(tokens), f"{f1['tagger']:.2f}", f"{f1[name]:.2f}",
             f"{f1[name] - f1['tagger']:+.2f}", f"{ratio:.2f}×"]
        )  # fmt: skip
        record(
            "exports", f"{name}, {corpus.name}, {head}", len(bare) / seconds[name], "1/s",
            peer=len(bare) / seconds["tagger"],
            note=f"peer: the tagger; {len(changed)} spans and {sum(tokens)} of {len(tokens)} tags "
            f"differ, F1 {f1[name]:.2f} for {f1['tagger']:.2f}",
        )  # fmt: skip
    return rows


def spans_of(tags: Tags) -> list[int]:
    return [len(spans(one)) for one in tags]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--taggers", type=Path, default=Path("runs/exports"))
    parser.add_argument(
        "--data", default=None, help="a folder with CoNLL-03's train.txt and test.txt"
    )
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--show", type=int, default=20, help="differing spans to list")
    args = parser.parse_args()
    corpora = {corpus.name: corpus for corpus in (load("none"), load(args.data))}
    rows = [
        row
        for corpus in corpora.values()
        for head in ("linear", "crf")
        for row in rows_of(corpus, head, args)
    ]
    show(
        ["data", "head", "export", "spans that differ", "spans", "tags that differ", "tags",
         "F1 tagger", "F1 export", "difference", "speed"],
        rows,
    )  # fmt: skip
