"""Training in the memory there is.

Endless sentences are cut into stretches; a batch that does not fit is trained in parts.
"""

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


def stretches(sentence: Sentence, longest: int = _STRETCH) -> Iterator[Sentence]:
    """Yield the sentence, or the labeled ones of its stretches if it is endless."""
    if len(sentence) <= longest:
        yield sentence
        return
    for start in range(0, len(sentence), longest):
        end = start + longest
        stretch = Sentence(
            f"{sentence.id}+{start}",
            sentence.tokens[start:end],
            sentence.tags[start:end],
            weight=sentence.weight,
        )
        if stretch.labeled:
            yield stretch


class BatchParts:
    """Batches in parts as large as memory is known to hold; `ids` name sentences in messages."""

    def __init__(self, limit: int, ids: Sequence[str]) -> None:
        self.limit, self._ids = limit, ids

    def add_gradients(
        self,
        batch: Sequence[int],
        backward: Callable[[Sequence[int]], Tensor],
        undo: Callable[[], None],
    ) -> Tensor:
        """Return the loss of a batch, part by part if need be.

        `backward` adds the gradients of a part and returns its share of the loss.
        When memory runs out, `undo` removes them and this batch and all later ones take smaller
        parts.
        """
        while True:
            part: Sequence[int] = batch
            try:
                losses = []
                for start in range(0, len(batch), self.limit):
                    part = batch[start : start + self.limit]
                    losses.append(backward(part))
                if self.limit < len(batch):
                    warn_once(
                        "memory ran out: batches are trained in parts of at most "
                        f"{self.limit} sentences, which add up to the same step"
                    )
                return torch.stack(losses).sum()
            except Exception as error:
                if not ran_out(error):
                    raise
                if len(part) == 1:
                    name = repr(self._ids[part[0]]) if self._ids else f"number {part[0]}"
                    raise ModelError(
                        f"one sentence alone does not fit in memory: {name}; "
                        "lower training.max_pieces, or use a smaller encoder"
                    ) from error
            # Outside the except block, since the error keeps the failed step's tensors alive.
            undo()
            release()
            self.limit = -(-len(part) // 2)


def ran_out(error: BaseException | None) -> bool:
    """Whether memory ran out, here or in an error that this one followed."""
    while error is not None:
        if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
            return True
        if isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS):
            return True
        error = error.__cause__ or error.__context__
    return False


def release() -> None:
    """Return the memory that torch caches to the GPU."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


@cache
def warn_once(text: str) -> None:
    """Log a warning, once in the life of the process: a loop trains dozens of times."""
    _log.warning(text)
