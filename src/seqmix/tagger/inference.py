"""Run the network on any number of sentences: in batches of similar length, results in order.

On a CPU, batches run side by side, one thread each.
Small matrix products waste time when split over cores, and the result of a batch that has a core to
itself does not depend on how many cores there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention import SDPBackend, sdpa_kernel

from seqmix.data.sentence import Sentence
from seqmix.protocols import Measure
from seqmix.tagger.batches import spread
from seqmix.tagger.network import Network, autocast
from seqmix.tagger.windows import WordPieces, by_length, chunks

A = TypeVar("A")
T = TypeVar("T")
Tensors = tuple[torch.Tensor, ...]
# On the device: what the host needs of scores or states, given the sentences and their lengths.
Reduce = Callable[[torch.Tensor, Sequence[Sentence], torch.Tensor], Tensors]
# On the host: one value for each sentence of a batch.
Finish = Callable[[Tensors, Sequence[Sentence]], list[T]]
BUDGET = {"cpu": 256, "cuda": 65536}  # pieces per batch: what fits the cache, what fills the GPU


def run_batches(
    network: Network,
    pieces: WordPieces,
    device: torch.device,
    sentences: Iterable[Sentence],
    reduce: Reduce,
    finish: Finish[T],
    empty: T,
    hidden: bool = False,
) -> Iterator[T]:
    """Yield one value per sentence, computed from its scores (or its hidden states).

    A GPU gets the next chunk before the host looks at the results of the last one.
    A sentence without tokens yields `empty`.
    """

    def start(chunk: list[Sentence]) -> _Running:
        windows = pieces.encode(sentence.tokens for sentence in chunk)

        def run(group: list[int]) -> Tensors:
            with torch.inference_mode():
                batch, ends = spread([windows[i] for i in group], device, network.first_position)
                output = network.hidden(batch) if hidden else network(batch)
                reduced = reduce(output, [chunk[i] for i in group], ends)
                return tuple(tensor.to("cpu", non_blocking=True) for tensor in reduced)

        groups = by_length(windows, BUDGET.get(device.type, 4096))
        # Around all batches, since autocast keeps its bf16 weights while it lasts.
        with autocast(device), _attention(device):
            return _Running(chunk, groups, side_by_side(run, groups, device), _waiter(device))

    for running in _delayed(map(start, chunks(sentences)), 1 if device.type == "cuda" else 0):
        running.wait()
        results = [empty] * len(running.chunk)
        for group, tensors in zip(running.groups, running.tensors, strict=True):
            values = finish(tensors, [running.chunk[i] for i in group])
            for i, value in zip(group, values, strict=True):
                results[i] = value
        yield from results


@dataclass(frozen=True)
class _Running:
    """A chunk whose results are ready once `wait` returns."""

    chunk: list[Sentence]
    groups: list[list[int]]
    tensors: list[Tensors]
    wait: Callable[[], object]


def side_by_side(function: Callable[[A], T], items: Sequence[A], device: torch.device) -> list[T]:
    """Return `[function(item) for item in items]`, on a CPU on as many threads as torch uses."""
    workers = torch.get_num_threads()
    if device.type != "cpu":
        return [function(item) for item in items]
    try:
        if len(items) == 1:  # a thread would cost a short sentence more than it gains
            torch.set_num_threads(1)
            return [function(items[0])]
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(workers)


def _attention(device: torch.device) -> AbstractContextManager[Any]:
    """Avoid cuDNN's attention, which is planned for each shape: here every batch has its own."""
    backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(backends) if device.type == "cuda" else nullcontext()


def _waiter(device: torch.device) -> Callable[[], object]:
    """Return a function that waits for all work that the device has been given so far."""
    if device.type != "cuda":
        return lambda: None
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event.synchronize


def _delayed(items: Iterator[T], n: int) -> Iterator[T]:
    """Yield the same items, each once n more have been drawn."""
    held: deque[T] = deque()
    for item in items:
        held.append(item)
        if len(held) > n:
            yield held.popleft()
    yield from held


def states(hidden: torch.Tensor, sentences: Sequence[Sentence], ends: torch.Tensor) -> Tensors:
    """Return the hidden states of words in float32."""
    return (hidden.float(),)


def by_sentence(tensors: Tensors, sentences: Sequence[Sentence]) -> list[NDArray[np.float32]]:
    """Cut the flat rows of words into those of each sentence."""
    rows, edges = tensors[0].numpy(), np.cumsum([0, *(len(s) for s in sentences)]).tolist()
    return [rows[first:last] for first, last in pairwise(edges)]


def _margins(probs: torch.Tensor) -> torch.Tensor:
    best = probs.topk(min(2, probs.shape[1]), dim=1).values  # [n_words, 2], or 1 of a single tag
    return 1 - best[:, 0] + best[:, 1:].sum(1)


MEASURES: dict[Measure, Callable[[torch.Tensor], torch.Tensor]] = {  # of each word's distribution
    "entropy": lambda probs: torch.special.entr(probs).sum(1),
    "least": lambda probs: 1 - probs.max(1).values,
    "margin": _margins,
}
