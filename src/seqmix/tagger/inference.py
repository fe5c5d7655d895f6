"""The network over any number of sentences: in batches alike in length, results in the sentences' order, a GPU never kept waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from seqmix.tagger.cpu_batches import side_by_side
from seqmix.tagger.network import Network, autocast
from seqmix.tagger.pieces import WordPieces, by_length, spread

T = TypeVar("T")
Parts = tuple[torch.Tensor, ...]
Reduce = Callable[
    [torch.Tensor, Sequence[Sentence], torch.Tensor], Parts
]  # of scores or states, sentences and their lengths
Tell = Callable[[Parts, Sequence[Sentence]], list[T]]
BUDGET = {"cpu": 512, "cuda": 65536}  # pieces a batch: what fits the cache, what fills the GPU
CHUNK = 4096  # sentences held at a time


def read(
    network: Network,
    pieces: WordPieces,
    device: torch.device,
    sentences: Iterable[Sentence],
    reduce: Reduce,
    tell: Tell[T],
    empty: T,
    hidden: bool = False,
) -> Iterator[T]:
    """One value a sentence, in a stream.

    On the device, `reduce` makes of scores (or hidden states) what the host needs; on the host, `tell` makes of that one value a
    sentence. A GPU is given the next chunk before the host looks at what it made of the last. A sentence without tokens is `empty`.
    """

    def ask(chunk: list[Sentence]) -> _Asked:
        windows = pieces.encode(sentence.tokens for sentence in chunk)

        def run(group: list[int]) -> Parts:
            with torch.inference_mode():
                batch, ends = spread([windows[i] for i in group], device, network.first_position)
                found = reduce(
                    network.hidden(batch) if hidden else network(batch),
                    [chunk[i] for i in group],
                    ends,
                )
                return tuple(part.to("cpu", non_blocking=True) for part in found)

        groups = by_length(windows, BUDGET.get(device.type, 4096))
        with (
            autocast(device),
            _attention(device),
        ):  # around all batches: bf16 weights are kept while it lasts
            return _Asked(chunk, groups, side_by_side(run, groups, device), _mark(device))

    for asked in _ahead(map(ask, chunks(sentences)), 1 if device.type == "cuda" else 0):
        asked.wait()
        results = [empty] * len(asked.chunk)
        for group, found in zip(asked.groups, asked.found, strict=True):
            for i, result in zip(group, tell(found, [asked.chunk[i] for i in group]), strict=True):
                results[i] = result
        yield from results


@dataclass(frozen=True)
class _Asked:
    """A chunk whose results are on their way; there once `wait` returns."""

    chunk: list[Sentence]
    groups: list[list[int]]
    found: list[Parts]
    wait: Callable[[], object]


def _attention(device: torch.device) -> AbstractContextManager[Any]:
    """Without cuDNN's attention on a GPU: it is planned anew for each shape, and here every batch has its own."""
    ways = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(ways) if device.type == "cuda" else nullcontext()


def _mark(device: torch.device) -> Callable[[], object]:
    """A way to wait for all that the device has been given so far."""
    if device.type != "cuda":
        return lambda: None
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event.synchronize


def _ahead(items: Iterator[T], n: int) -> Iterator[T]:
    """The same items, each given out once n more have been drawn."""
    held: deque[T] = deque()
    for item in items:
        held.append(item)
        if len(held) > n:
            yield held.popleft()
    yield from held


def chunks(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences, so many at a time."""
    chunk: list[Sentence] = []
    for sentence in sentences:
        chunk.append(sentence)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def by_sentence(found: Parts, own: Sequence[Sentence]) -> list[NDArray[np.float32]]:
    """Rows of words in one piece, cut into sentences."""
    rows, edges = found[0].numpy(), np.cumsum([0, *(len(s) for s in own)]).tolist()
    return [rows[first:last] for first, last in pairwise(edges)]


def _margins(probs: torch.Tensor) -> torch.Tensor:
    best = probs.topk(
        min(2, probs.shape[1]), dim=1
    ).values  # [n_words, 2], or 1 where there is one tag
    return 1 - best[:, 0] + best[:, 1:].sum(1)


MEASURES: dict[Measure, Callable[[torch.Tensor], torch.Tensor]] = {  # of each word's distribution
    "entropy": lambda probs: torch.special.entr(probs).sum(1),
    "least": lambda probs: 1 - probs.max(1).values,
    "margin": _margins,
}
