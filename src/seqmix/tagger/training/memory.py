"""Training in the memory there is: endless sentences in stretches, a batch that does not fit in parts that add up to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import torch
from torch import Tensor

from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError

_log = logging.getLogger("seqmix.tagger")
_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
_STRETCH = 1000  # tokens


def stretches(sentence: Sentence) -> Iterator[Sentence]:
    """The sentence, or its stretches one after another where it is endless; stretches without a label teach nothing."""
    if len(sentence) <= _STRETCH:
        yield sentence
        return
    for start in range(0, len(sentence), _STRETCH):
        end = start + _STRETCH
        stretch = Sentence(
            f"{sentence.id}+{start}", sentence.tokens[start:end], sentence.tags[start:end]
        )
        if stretch.labeled:
            yield stretch


class Room:
    """How many sentences memory holds at a time, as far as is known."""

    def __init__(self, most: int, names: Sequence[str]) -> None:
        self.most, self._names = most, names

    def add_up(
        self,
        chosen: Sequence[int],
        backward: Callable[[Sequence[int]], Tensor],
        undo: Callable[[], None],
    ) -> Tensor:
        """The gradients of a batch, part by part if need be: `backward` adds those of a part and gives its share of the loss.

        When memory runs out, `undo` takes back what was added and the batch begins again in smaller parts; so do all that follow.
        """
        while True:
            part: Sequence[int] = chosen
            try:
                losses = []
                for part in self._parts(chosen):
                    losses.append(backward(part))
                if self.most < len(chosen):
                    say_once(
                        f"memory ran out: batches are trained in parts of at most {self.most} sentences, which add up to the same step"
                    )
                return torch.stack(losses).sum()
            except Exception as error:
                if not ran_out(error):
                    raise
                if len(part) == 1:
                    name = repr(self._names[part[0]]) if self._names else f"number {part[0]}"
                    raise ModelError(
                        f"memory does not hold one sentence alone: {name}; lower training.max_pieces, or take a smaller encoder"
                    ) from error
            # subtle: behind the except block, where the error no longer keeps the failed step's tensors alive
            undo()
            release()
            self.most = -(-len(part) // 2)

    def _parts(self, chosen: Sequence[int]) -> Iterator[Sequence[int]]:
        return (chosen[start : start + self.most] for start in range(0, len(chosen), self.most))


def ran_out(error: BaseException | None) -> bool:
    """Whether an error means that memory ran out. subtle: a CUDA graph that could not be captured says something else on top of it."""
    while error is not None:
        if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
            return True
        if isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS):
            return True
        error = error.__cause__ or error.__context__
    return False


def release() -> None:
    """Give back what torch holds for later."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


@cache
def say_once(text: str) -> None:
    """A line of the log, and not again: a loop trains dozens of times."""
    _log.warning(text)
