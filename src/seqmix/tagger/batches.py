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

from seqmix.tagger.windows import Ints, Window

Windows = Sequence[Sequence[Window]]  # of each sentence


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
    sizes = _sizes(windows)
    width = width or max(sizes.tolist(), default=1)
    row = _first_fit(sizes.tolist(), width)
    number, left = _in_row(row, sizes)
    shape = max(row.tolist(), default=-1) + 1, width
    ids, segments = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    positions = np.full(shape, first_position)
    inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.repeat(row * width + left, sizes) + inside
    ids.reshape(-1)[places] = _joined([window.ids for window in windows])
    positions.reshape(-1)[places] = inside + first_position
    segments.reshape(-1)[places] = np.repeat(number, sizes)
    words, lengths = _words(sentences, windows, row * width + left)
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
    sizes = _sizes(windows)
    width = max(sizes.tolist(), default=1)
    at, counts = _words(sentences, windows, np.arange(len(windows)) * width)
    parts = [_joined([window.ids for window in windows]), sizes, at, counts]
    sent = on_device(torch.from_numpy(np.concatenate(parts)), device)
    flat, size, words, lengths = sent.split([len(part) for part in parts])
    place = torch.arange(width, device=device)
    filled = place < size[:, None]
    ids = torch.zeros(filled.shape, dtype=torch.long, device=device).masked_scatter_(filled, flat)
    positions = (place + first_position).repeat(len(ids), 1)  # not a view: torch does not pin those
    return Batch(ids, positions, filled.long(), words, tuple(counts.tolist())), lengths


def by_length(sentences: Windows, budget: int) -> list[list[int]]:
    """Group sentences alike in length, at most `budget` pieces per group, padding included."""
    sizes = np.array(
        [
            len(windows[0].ids)
            if len(windows) == 1
            else max((len(window.ids) for window in windows), default=0)
            for windows in sentences
        ]
    )
    not_empty = np.count_nonzero(sizes)
    order = np.argsort(-sizes, kind="stable")[:not_empty]
    rows = np.cumsum([len(sentences[i]) for i in order])
    groups, first, done = [], 0, 0  # sentences and rows in earlier groups
    while first < len(order):
        limit = done + budget // sizes[order[first]]
        last = max(first + 1, int(np.searchsorted(rows, limit, side="right")))
        groups.append(order[first:last].tolist())
        first, done = last, int(rows[last - 1])
    return groups


def _words(sentences: Windows, windows: Sequence[Window], first: Ints) -> tuple[Ints, Ints]:
    """Return the place of each word's first piece, by sentence, and the words per sentence.

    `first` holds the places at which the windows start.
    """
    owned = np.fromiter((len(window.at) for window in windows), dtype=np.int64, count=len(windows))
    at = np.repeat(first, owned) + _joined([window.at for window in windows])
    if all(len(sentence) == 1 for sentence in sentences):
        return at, owned
    sentence_of = np.repeat(np.arange(len(sentences)), [len(sentence) for sentence in sentences])
    lengths = np.bincount(sentence_of, weights=owned, minlength=len(sentences)).astype(np.int64)
    starts = (np.cumsum(lengths) - lengths)[sentence_of]
    ordered = np.empty_like(at)
    ordered[np.repeat(starts, owned) + _joined([window.words for window in windows])] = at
    return ordered, lengths


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _sizes(windows: Sequence[Window]) -> Ints:
    """Return the number of pieces of each window."""
    return np.fromiter((len(window.ids) for window in windows), dtype=np.int64, count=len(windows))


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
