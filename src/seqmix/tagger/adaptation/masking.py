"""Text as rows of pieces, and the words hidden in them: what masked-LM training reads.

The windows of all sentences are laid out once, in rows of one width.
Each epoch then shuffles the rows and hides other words, in a few numpy calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from seqmix.data.window_bounds import Ints
from seqmix.tagger.windows import WordPieces

# How often a hidden piece shows the mask, and a random piece; else it shows itself.
_MASK, _RANDOM = 0.8, 0.1


@dataclass(frozen=True)
class Rows:
    """Windows in rows of one width; a unit (a word or a piece) is hidden as a whole."""

    ids: Ints  # [n_rows, width]
    positions: Ints  # [n_rows, width]
    segments: Ints  # [n_rows, width] the windows of a row from 1; 0 is padding
    # [n_rows, width] from 1; 0 is never hidden: special pieces, padding, words of another window.
    units: Ints
    n_units: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Vocabulary:
    """What masking needs to know about a tokenizer."""

    mask: int
    special: NDArray[np.bool_]  # [n_pieces] pieces that are in no word, and so are never hidden
    ordinary: Ints  # the ids of all others

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Vocabulary:
        """Return a tokenizer's vocabulary; unused entries and the unknown piece are special."""
        names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        named = set(tokenizer.all_special_tokens)
        special = np.array(
            [name is None or name in named or name.startswith("[unused") for name in names]
        )
        return cls(tokenizer.mask_token_id, special, np.flatnonzero(~special))


@dataclass(frozen=True)
class Masked:
    """Rows with some pieces hidden, their places in the flattened rows, and what they are."""

    ids: torch.Tensor  # [n_rows, width]
    positions: torch.Tensor  # [n_rows, width]
    segments: torch.Tensor  # [n_rows, width]
    at: torch.Tensor  # [n_hidden]
    truth: torch.Tensor  # [n_hidden]


def rows_of(
    sentences: Sequence[Sequence[str]],
    pieces: WordPieces,
    special: NDArray[np.bool_],
    whole_words: bool = True,
    together: bool = True,
    first_position: int = 0,
    pad: int = 0,
) -> Rows:
    """Lay sentences out: one window per row, or several (`together`) with best fit."""
    windows, marks, n_units = [], [], 0
    for tokens, parts in zip(sentences, pieces.encode(sentences), strict=True):
        sizes = np.array([min(len(word), pieces.room) for word in pieces.words(tokens)])
        for window in parts:
            mark = np.zeros(len(window.ids), dtype=np.int64)
            # Where windows overlap, a word is hidden only in the window that reads it.
            if len(window.words):
                counts = sizes[window.words]
                counts = counts if whole_words else np.ones(counts.sum(), dtype=np.int64)
                mark[window.at[0] :][: counts.sum()] = np.repeat(
                    np.arange(len(counts)) + n_units + 1, counts
                )
                n_units += len(counts)
            windows.append(window.ids)
            marks.append(mark)
    width = max(map(len, windows), default=1)
    places = [(row, 0, 1) for row in range(len(windows))]
    if together:
        width = max(width, pieces.room + len(pieces.before) + len(pieces.after))
        places = _best_fit(map(len, windows), width)
    shape = (max((row for row, _, _ in places), default=-1) + 1, width)
    ids, positions = np.full(shape, pad), np.full(shape, first_position)
    segments, units = np.zeros(shape, int), np.zeros(shape, int)
    for (row, left, number), window_ids, mark in zip(places, windows, marks, strict=True):
        stretch = slice(left, left + len(mark))
        ids[row, stretch], segments[row, stretch], units[row, stretch] = window_ids, number, mark
        positions[row, stretch] = np.arange(len(mark)) + first_position
    barred = np.zeros(n_units + 1, dtype=bool)
    barred[units[special[ids]]] = True
    units[barred[units]] = 0
    return Rows(ids, positions, segments, units, n_units)


def _best_fit(sizes: Iterator[int] | Sequence[int], width: int) -> list[tuple[int, int, int]]:
    """Return each window's row, first place and number in the row: it leaves least room there."""
    open_rows: list[list[int]] = [[] for _ in range(width + 1)]  # by their room
    members: list[int] = []
    places = []
    for size in sizes:
        room = next((room for room in range(size, width + 1) if open_rows[room]), None)
        if room is None:
            row, room = len(members), width
            members.append(0)
        else:
            row = open_rows[room].pop()
        members[row] += 1
        places.append((row, width - room, members[row]))
        open_rows[room - size].append(row)
    return places


def drawn(rows: Rows, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which units to hide, at random [n_units + 1]."""
    return rng.random(rows.n_units + 1) < share


def each_once(rows: Rows, share: float, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Return masks that together hide each unit once, so that a held-out loss is over all words."""
    group = rng.permutation(rows.n_units + 1) % max(1, round(1 / share))
    return [group == number for number in range(group.max() + 1)]


def batches(
    rows: Rows,
    hidden: NDArray[np.bool_],
    order: Ints,
    n: int,
    vocabulary: Vocabulary,
    rng: np.random.Generator,
    device: torch.device,
) -> Iterator[Masked]:
    """Yield the rows in this order as `n` equal batches, cut from one copy on the device."""
    ids, units, width = rows.ids[order], rows.units[order], rows.ids.shape[1]
    at = np.flatnonzero((hidden[units] & (units > 0)).ravel())
    truth = ids.ravel()[at]
    luck = rng.random(len(at))
    random = vocabulary.ordinary[rng.integers(len(vocabulary.ordinary), size=len(at))]
    ids.ravel()[at] = np.where(
        luck < _MASK, vocabulary.mask, np.where(luck < _MASK + _RANDOM, random, truth)
    )
    edges = np.linspace(0, len(rows), n + 1).round().astype(np.int64)
    cuts = np.searchsorted(at, edges * width)
    at -= np.repeat(edges[:-1] * width, np.diff(cuts))
    tensors = [
        torch.from_numpy(array).to(device)
        for array in (ids, rows.positions[order], rows.segments[order], at, truth)
    ]
    for first, last, start, end in zip(edges, edges[1:], cuts, cuts[1:], strict=False):
        yield Masked(
            *(tensor[first:last] for tensor in tensors[:3]),
            *(tensor[start:end] for tensor in tensors[3:]),
        )
