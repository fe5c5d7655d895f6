"""Text as rows of pieces, and the words hidden in them: what masked-LM training reads.

The windows of all sentences are laid into rows of one width once. Each epoch then takes a handful of numpy calls: the rows in a new
order, other words hidden. Between them the accelerator only cuts slices off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from seqmix.tagger.pieces import Ints, WordPieces

_MASK, _OTHER = (
    0.8,
    0.1,
)  # how often a hidden piece shows the mask, and another piece; else it shows itself


@dataclass(frozen=True)
class Rows:
    """Windows in rows of one width. A unit is what is hidden together: a word, or a piece when words are not kept whole."""

    ids: Ints  # [n_rows, width]
    positions: Ints  # [n_rows, width]
    segments: Ints  # [n_rows, width] the windows of a row from 1; 0 is padding
    units: Ints  # [n_rows, width] from 1; 0 is never hidden: special pieces, padding, and words another window reads
    n_units: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Vocabulary:
    """What masking has to know of a tokenizer."""

    mask: int
    special: NDArray[
        np.bool_
    ]  # [n_pieces] pieces that no word is made of: nothing is learned from guessing them
    ordinary: Ints  # the others

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Vocabulary:
        """Special pieces are those the tokenizer names, the unknown one among them, and BERT's spare entries."""
        names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        named = set(tokenizer.all_special_tokens)
        special = np.array(
            [name is None or name in named or name.startswith("[unused") for name in names]
        )
        return cls(tokenizer.mask_token_id, special, np.flatnonzero(~special))


@dataclass(frozen=True)
class Masked:
    """A batch: rows with some pieces hidden, where they stand in the flattened rows, and what they are."""

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
    """Lay sentences out: several windows a row (`together`), each where it leaves least room, or one a row."""
    windows, marks, n_units = [], [], 0
    for tokens, own in zip(sentences, pieces.encode(sentences), strict=True):
        sizes = np.array([min(len(word), pieces.room) for word in pieces.words(tokens)])
        for window in own:
            mark = np.zeros(len(window.ids), dtype=np.int64)
            if len(
                window.words
            ):  # subtle: in an overlap each word is hidden in the one window that reads it, and seen in the other
                counts = sizes[window.words]
                counts = counts if whole_words else np.ones(counts.sum(), dtype=np.int64)
                mark[window.at[0] :][: counts.sum()] = np.repeat(
                    np.arange(len(counts)) + n_units + 1, counts
                )
                n_units += len(counts)
            windows.append(window.ids)
            marks.append(mark)
    longest = max(map(len, windows), default=1)
    width = (
        max(longest, pieces.room + len(pieces.before) + len(pieces.after)) if together else longest
    )
    places = (
        _best_fit(map(len, windows), width)
        if together
        else [(row, 0, 1) for row in range(len(windows))]
    )
    shape = (max((row for row, _, _ in places), default=-1) + 1, width)
    ids, positions, segments, units = (
        np.full(shape, pad),
        np.full(shape, first_position),
        np.zeros(shape, int),
        np.zeros(shape, int),
    )
    for (row, left, number), window_ids, mark in zip(places, windows, marks, strict=True):
        stretch = slice(left, left + len(mark))
        ids[row, stretch], segments[row, stretch], units[row, stretch] = window_ids, number, mark
        positions[row, stretch] = np.arange(len(mark)) + first_position
    barred = np.zeros(n_units + 1, dtype=bool)
    barred[units[special[ids]]] = True
    units[barred[units]] = 0
    return Rows(ids, positions, segments, units, n_units)


def _best_fit(sizes: Iterator[int] | Sequence[int], width: int) -> list[tuple[int, int, int]]:
    """Row, first place and number in its row of each window: it goes where it leaves least room."""
    open_rows: list[list[int]] = [[] for _ in range(width + 1)]  # by the room they have
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
    """Which units to hide this time, so many of a hundred [n_units + 1]."""
    return rng.random(rows.n_units + 1) < share


def each_once(rows: Rows, share: float, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Masks that together hide each unit once: a held-out loss over all the words, not over some."""
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
    """The rows in this order as `n` batches of like size on the device, where everything is before the first one is given."""
    ids, units, width = rows.ids[order], rows.units[order], rows.ids.shape[1]
    at = np.flatnonzero((hidden[units] & (units > 0)).ravel())
    truth = ids.ravel()[at]
    luck, others = (
        rng.random(len(at)),
        vocabulary.ordinary[rng.integers(len(vocabulary.ordinary), size=len(at))],
    )
    ids.ravel()[at] = np.where(
        luck < _MASK, vocabulary.mask, np.where(luck < _MASK + _OTHER, others, truth)
    )
    edges = np.linspace(0, len(rows), n + 1).round().astype(np.int64)
    cuts = np.searchsorted(at, edges * width)
    at -= np.repeat(edges[:-1] * width, np.diff(cuts))
    there = [
        torch.from_numpy(array).to(device)
        for array in (ids, rows.positions[order], rows.segments[order], at, truth)
    ]
    for first, last, start, end in zip(edges, edges[1:], cuts, cuts[1:], strict=False):
        yield Masked(
            *(tensor[first:last] for tensor in there[:3]),
            *(tensor[start:end] for tensor in there[3:]),
        )
