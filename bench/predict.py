r"""Prediction side by side with one model: seqmix, pipelines of other libraries, and the limits.

python bench/predict.py [--sizes 3453] [--data ../shared/data/conll03] \
    [--optimum VENV/bin/python] [--spacy en_core_web_sm]

The pipelines are those of Hugging Face and of optimum-onnx, in processes of their own with torch's
defaults, on the folder that `seqmix export --to hf` writes; VENV has optimum-onnx, which takes
older transformers only. spaCy's is there for scale. The limit in float32 is the bare encoder over
batches that are cut, sorted and on the device; in int8 it is the matrix products alone. A sentence
alone has 25 tokens. Of a few rounds, in which all take turns, the best counts. CPU time stands
beside the time, since others may be using the cores; with OMP_NUM_THREADS=1 it is what a quiet core
would take.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from common import Corpus, load, record, show
from predict_ways import Clocks, Result, Tags, Way, int8_products, peer, seqmix, spacy_way
from score import bare, ready, seconds
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.export.hf import export_hf
from seqmix.export.onnx import export_onnx
from seqmix.onnx_runtime.tagger import OnnxTagger
from seqmix.tagger import Settings, Tagger

TOKENS = 25  # of a sentence alone
PIPELINE = "Hugging Face's pipeline, 32 at once"


def ways_of(tagger: Tagger, stack: ExitStack, args: argparse.Namespace) -> dict[str, Way]:
    """All that can run here."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    ways = {"seqmix": seqmix(tagger)}
    on_cpu = tagger.device.type == "cpu"
    export_hf(tagger, folder / "hf")
    if on_cpu:
        ways["seqmix, int8"] = seqmix(tagger.int8())
    if on_cpu and find_spec("onnx") and find_spec("onnxruntime"):
        for precision in ("float32", "int8"):
            file = folder / f"{precision}.onnx"
            export_onnx(tagger, file, precision)
            ways[f"seqmix, ONNX {precision}"] = seqmix(OnnxTagger(file))
    libraries = {"Hugging Face": (sys.executable, "transformers")}
    if args.optimum and on_cpu:
        libraries["optimum-onnx"] = (args.optimum, "optimum")
        (folder / "hf" / "model.onnx").symlink_to(folder / "float32.onnx")
    for name, (python, library) in libraries.items():
        one = peer(python, library, folder / "hf", tagger.device.type, 1)
        ways[f"{name}'s pipeline, 1 at once"] = stack.enter_context(one)
        many = peer(python, library, folder / "hf", tagger.device.type, 32)
        ways[f"{name}'s pipeline, 32 at once"] = stack.enter_context(many)
    if find_spec("spacy"):
        ways[f"spaCy, {args.spacy or 'its ner'}"] = spacy_way(args.spacy, tagger.tag_set.types)
    return ways


def in_turn(
    ways: dict[str, Way], sentences: Sequence[Sentence], rounds: int, alone: bool
) -> dict[str, Result]:
    """The least times of each way; they take turns, after a short pass that does not count."""
    for way in ways.values():
        way(sentences[:64], alone)
    results = [{name: way(sentences, alone) for name, way in ways.items()} for _ in range(rounds)]
    return {name: least([each[name] for each in results]) for name in ways}


def least(results: Sequence[Result]) -> Result:
    """The least time and the least CPU time, in all and of each sentence."""

    def both(times: Sequence[Clocks]) -> Clocks:
        return min(t[0] for t in times), min(t[1] for t in times)

    each = [both(times) for times in zip(*(result.each for result in results), strict=True)]
    return Result(both([result.time for result in results]), each, results[0].tags)


def alone(ways: dict[str, Way], corpus: Corpus, n: int, rounds: int) -> dict[str, list[float]]:
    """p50, p90 and the p50 of CPU time in ms of sentences of 25 tokens that come one at a time."""
    long = [s.tokens[:TOKENS] for s in (*corpus.test, *corpus.train) if len(s) >= TOKENS]
    sentences = [Sentence(f"s{i}", tokens) for i, tokens in enumerate(long[:n])]
    quantiles = ((0, 0.5), (0, 0.9), (1, 0.5))
    results = in_turn(
        {k: way for k, way in ways.items() if "32 at" not in k}, sentences, rounds, True
    )
    return {
        name: [1000 * float(np.quantile([t[i] for t in result.each], q)) for i, q in quantiles]
        for name, result in results.items()
    }


def same(ours: Tags, theirs: Tags) -> float:
    """The share of tags that agree."""
    pairs = [pair for tags in zip(ours, theirs, strict=True) for pair in zip(*tags, strict=True)]
    return float(np.mean([a == b for a, b in pairs]))


def limits_of(tagger: Tagger, sentences: Sequence[Sentence], rounds: int) -> dict[str, Clocks]:
    """Time and CPU time at the least, of the ways that have a limit."""
    batches = ready(tagger, sentences)
    work = {"seqmix": partial(bare, tagger, batches)}
    if tagger.device.type == "cpu":
        work["seqmix, int8"] = int8_products(tagger.int8(), batches)

    def timed(function: Callable[[], object]) -> Result:
        start = time.process_time()
        return Result((seconds(function, tagger.device), time.process_time() - start), [], [])

    return {
        name: least([timed(function) for _ in range(rounds + 1)]).time
        for name, function in work.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[3453])
    parser.add_argument("--data", help="a folder with CoNLL-03's files; the gazette without it")
    parser.add_argument("--optimum", help="a Python that has optimum-onnx")
    parser.add_argument("--spacy", default="", help="an installed spaCy pipeline")
    parser.add_argument("--alone", type=int, default=200, help="sentences one at a time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    corpus = load(args.data)
    tagger = Tagger(settings=Settings(epochs=args.epochs)).fit(
        corpus.train[:200], np.random.default_rng(0), corpus.tags
    )
    rows: list[list[object]] = []
    with ExitStack() as stack:
        ways = ways_of(tagger, stack, args)
        p = alone(ways, corpus, args.alone, args.rounds)
        for size in args.sizes:
            sentences = corpus.test[:size]
            results = in_turn(ways, sentences, args.rounds, False)
            limits = limits_of(tagger, sentences, args.rounds)
            rows += [
                row_of(name, result, results, limits.get(name), p.get(name), sentences, tagger)
                for name, result in results.items()
            ]
    show(
        ["sentences", "", "per second", "of the pipeline", "of the limit",
         "CPU ms each", "of the pipeline", "of the limit",
         "p50, p90, CPU p50 alone", "F1", "same tags"],
        rows,
    )  # fmt: skip


def row_of(
    name: str,
    result: Result,
    results: dict[str, Result],
    limit: Clocks | None,
    alone: Sequence[float] | None,
    sentences: Sequence[Sentence],
    tagger: Tagger,
) -> list[object]:
    """A row of the table, recorded too."""
    n, pipeline = len(sentences), results[PIPELINE].time
    ratio, cpu_ratio = (theirs / ours for theirs, ours in zip(pipeline, result.time, strict=True))
    shares = [f"{most / t:.0%}" for most, t in zip(limit or (), result.time, strict=False)]
    tagged = name.partition(",")[0] != "spaCy"
    f1 = 100 * score([s.tags for s in sentences], result.tags).f1 if tagged else None
    agree = same(results["seqmix"].tags, result.tags) if tagged else None
    times = ", ".join(f"{ms:.1f}" for ms in alone) + " ms" if alone else ""
    case = name.removeprefix("seqmix") if name.startswith("seqmix") else f", {name}"
    facts = [
        "peer: pipeline, batch_size=32",
        f"CPU {1000 * result.time[1] / n:.2f} ms each, {cpu_ratio:.2f} in CPU time",
        *(["of the limit {}, in CPU time {}".format(*shares)] if limit else []),
        *([f"F1 {f1:.2f}; same tags {agree:.4%}"] if tagged else []),
        *([f"alone p50, p90, CPU p50 {times}"] if times else []),
    ]
    record(
        "predict", f"{tagger.device.type}, {n} sentences{case}", n / result.time[0], "1/s",
        peer=n / pipeline[0], limit=n / limit[0] if limit else None, note="; ".join(facts),
    )  # fmt: skip
    return [
        n, name, f"{n / result.time[0]:.0f}", f"{ratio:.2f}×", shares[0] if limit else "",
        f"{1000 * result.time[1] / n:.1f}", f"{cpu_ratio:.2f}×", shares[1] if limit else "",
        times, f"{f1:.2f}" if tagged else "", f"{agree:.4%}" if tagged else "",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
