"""The ways to predict that bench/predict.py compares.

Each takes sentences and how many may go at once.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from seqmix.data.sentence import Sentence
from seqmix.onnx_runtime.tagger import OnnxTagger
from seqmix.tagger import Tagger
from seqmix.tagger.batches import Batch
from seqmix.tagger.inference import side_by_side
from seqmix.tagger.int8 import Int8Linear

Tags = list[Sequence[str]]


Clocks = tuple[float, float]  # seconds, and CPU seconds of all threads


class Result(NamedTuple):
    """The time in all, of each sentence where they go one at a time, and the tags."""

    time: Clocks
    each: list[Clocks]
    tags: Tags


def clocks() -> Clocks:
    return time.perf_counter(), time.process_time()


def since(start: Clocks) -> Clocks:
    now = clocks()
    return now[0] - start[0], now[1] - start[1]


Way = Callable[[Sequence[Sentence], bool], Result]  # the sentences, and whether one at a time


def in_process(predict: Callable[[Iterable[Sentence]], Iterable[Sequence[str]]]) -> Way:
    """A way that runs here."""

    def way(sentences: Sequence[Sentence], alone: bool) -> Result:
        bare = [sentence.unlabeled() for sentence in sentences]
        start = clocks()
        if not alone:
            tags = [*predict(bare)]
            return Result(since(start), [], tags)
        each, tags = [], []
        for sentence in bare:
            before = clocks()
            tags += predict([sentence])
            each.append(since(before))
        return Result(since(start), each, tags)

    return way


def seqmix(tagger: Tagger | OnnxTagger) -> Way:
    """The tags of ours: token-wise best, as pipelines give them."""
    return in_process(lambda sentences: (s.tags for s in tagger.predict(sentences, legal=False)))


@contextmanager
def peer(python: str, library: str, model: Path, device: str, batch: int) -> Iterator[Way]:
    """A pipeline in another process, which takes raw text and names the pieces that are not O."""
    command = [python, "-I", str(Path(__file__).with_name("predict_peer.py"))]
    with subprocess.Popen(
        [*command, library, str(model), device],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit(f"{python} cannot run the pipeline of {library}")

        def way(sentences: Sequence[Sentence], alone: bool) -> Result:
            located = [sentence.located() for sentence in sentences]
            work = {"texts": [text for text, _ in located], "batch": 1 if alone else batch}
            print(json.dumps(work), file=process.stdin, flush=True)
            answer = json.loads(process.stdout.readline())
            tags: Tags = []
            for (_, offsets), pieces in zip(located, answer["pieces"], strict=True):
                first = {start: i for i, (start, _) in enumerate(offsets)}
                tags.append(["O"] * len(offsets))
                for start, tag in pieces:
                    if start in first:
                        tags[-1][first[start]] = tag
            each = [(seconds, cpu) for seconds, cpu in answer["each"]]
            return Result(tuple(answer["seconds"]), each, tags)

        yield way
        process.stdin.close()


def spacy_way(name: str, types: Sequence[str]) -> Way:
    """A spaCy pipeline; by default its `ner` untrained, which is as fast as a trained one."""
    import spacy

    if name:
        nlp: Any = spacy.load(name)
    else:
        nlp = spacy.blank("en")
        ner = nlp.add_pipe("ner")
        for label in types:
            ner.add_label(label)
        nlp.initialize()

    def predict(sentences: Iterable[Sentence]) -> Iterator[Sequence[str]]:
        for _ in nlp.pipe(sentence.located()[0] for sentence in sentences):
            yield ()

    return in_process(predict)


def int8_products(tagger: Tagger, batches: Sequence[Batch]) -> Callable[[], object]:
    """Multiplies all that int8 predictions of these batches multiply, and does nothing else."""
    shapes: list[list[tuple[Int8Linear, torch.Size]]] = []
    layers = [layer for layer in tagger.network.modules() if isinstance(layer, Int8Linear)]
    hooks = [
        layer.register_forward_pre_hook(
            lambda layer, inputs: shapes[-1].append((layer, inputs[0].shape))
        )
        for layer in layers
    ]
    with torch.inference_mode():
        for batch in batches:
            shapes.append([])
            tagger.network(batch)
    for hook in hooks:
        hook.remove()
    inputs = {shape: torch.randn(shape) for batch in shapes for _, shape in batch}

    def multiply(batch: Sequence[tuple[Int8Linear, torch.Size]]) -> None:
        with torch.inference_mode():
            for layer, shape in batch:
                layer(inputs[shape])

    return lambda: side_by_side(multiply, shapes, torch.device("cpu"))
