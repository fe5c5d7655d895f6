"""Windows laid out in rows.

For training, a batch packs several windows into one row, each attending to itself only: random
batches without padding.
For prediction, sentences alike in length are spread over rows of one window each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqmix.data.window_bounds import Ints
from seqmix.tagger.windows import Windows, joined, sizes_of, word_places


@dataclass(frozen=True)
class Batch:
    """Windows laid out in rows; `segments` numbers those of a row from 1, and 0 is padding."""

    ids: torch.Tensor  # [n_rows, width]
    positions: torch.Tensor  # [n_rows, width]
    segments: torch.Tensor  # [n_rows, width]
    words: torch.Tensor  # [n_words] each word's first piece in the flattened rows, by sentence
    lengths: tuple[int, ...]  # words per sentence

    def to(self, device: torch.device) -> Batch:
        """Return the same batch on another device, without waiting for the copy."""
        ids, positions, segments, words = (
            on_device(t, device) for t in (self.ids, self.positions, self.segments, self.words)
        )
        return Batch(ids, positions, segments, words, self.lengths)


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a copy on the device without waiting for it, which takes pinned memory."""
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)


def pack(sentences: Windows, first_position: int = 0, width: int | None = None) -> Batch:
    """Lay windows out in rows, several per row; by default as wide as the longest window."""
    windows = [window for sentence in sentences for window in sentence]
    sizes = sizes_of(windows)
    width = width or max(sizes.tolist(), default=1)
    row = _first_fit(sizes.tolist(), width)
    number, left = _in_row(row, sizes)
    shape = max(row.tolist(), default=-1) + 1, width
    ids, segments = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    positions = np.full(shape, first_position)
    inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.repeat(row * width + left, sizes) + inside
    ids.reshape(-1)[places] = joined([window.ids for window in windows])
    positions.reshape(-1)[places] = inside + first_position
    segments.reshape(-1)[places] = np.repeat(number, sizes)
    words, lengths = word_places(sentences, windows, row * width + left)
    tensor = torch.from_numpy
    arrays = tensor(ids), tensor(positions), tensor(segments), tensor(words)
    return Batch(*arrays, tuple(lengths.tolist()))


def spread(
    sentences: Windows, device: torch.device, first_position: int = 0
) -> tuple[Batch, torch.Tensor]:
    """Lay windows out on the device, one per row; also return the number of words per sentence.

    Only what cannot be computed there is sent, as one tensor: a GPU reads a batch faster than the
    host could lay it out.
    """
    windows = [window for sentence in sentences for window in sentence]
    sizes = sizes_of(windows)
    width = max(sizes.tolist(), default=1)
    at, counts = word_places(sentences, windows, np.arange(len(windows)) * width)
    parts = [joined([window.ids for window in windows]), sizes, at, counts]
    sent = on_device(torch.from_numpy(np.concatenate(parts)), device)
    flat, size, words, lengths = sent.split([len(part) for part in parts])
    place = torch.arange(width, device=device)
    filled = place < size[:, None]
    ids = torch.zeros(filled.shape, dtype=torch.long, device=device).masked_scatter_(filled, flat)
    positions = (place + first_position).repeat(len(ids), 1)  # not a view: torch does not pin those
    return Batch(ids, positions, filled.long(), words, tuple(counts.tolist())), lengths


def _first_fit(sizes: Sequence[int], width: int) -> Ints:
    """Return the row of each window: the longest first, each into the first row with room."""
    row = np.zeros(len(sizes), dtype=np.int64)
    free: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        row[i] = next((r for r, room in enumerate(free) if room >= sizes[i]), len(free))
        if row[i] == len(free):
            free.append(width)
        free[row[i]] -= sizes[i]
    return row


def _in_row(row: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Return the number of each window in its row, from 1, and its left edge; longest first."""
    order = np.lexsort((-sizes, row))
    before = np.cumsum(sizes[order]) - sizes[order]
    heads = np.searchsorted(row[order], row[order])  # the first window of each one's row
    number, left = np.empty_like(row), np.empty_like(row)
    number[order] = np.arange(len(row)) - heads + 1
    left[order] = before - before[heads]
    return number, left
