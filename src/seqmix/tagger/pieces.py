"""Words to pieces and back: what the encoder reads, and which piece speaks for which word.

The first piece of a word carries its tag. A sentence longer than the limit becomes several windows that overlap; each word is read in
the window that shows most of its surroundings, so that no word loses its tag or its prediction. A batch packs several windows
into one row, each attending to itself only: random batches without padding, the arithmetic of the padded ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from seqmix.starter.loader import plain_backend

Ints = NDArray[np.int64]
_REMEMBERED = 30_000  # sentences whose windows are kept
_LETTERS = 1000  # of one word that the tokenizer is shown; WordPiece takes the third power of them


@dataclass(frozen=True)
class Window:
    """A stretch of one sentence as the encoder sees it."""

    ids: Ints  # [n_pieces], special pieces included
    words: Ints  # [n_owned] the words read here
    at: Ints  # [n_owned] where their first pieces stand in `ids`


@dataclass(frozen=True)
class Batch:
    """Windows laid out in rows. `segments` numbers the windows of a row from 1; 0 is padding."""

    ids: torch.Tensor  # [n_rows, width]
    positions: torch.Tensor  # [n_rows, width]
    segments: torch.Tensor  # [n_rows, width]
    words: torch.Tensor  # [n_words] index of each word's first piece in the flattened rows, sentence by sentence
    lengths: tuple[int, ...]  # words a sentence

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device, without waiting for the copy."""
        ids, positions, segments, words = (on_device(t, device) for t in (self.ids, self.positions, self.segments, self.words))
        return Batch(ids, positions, segments, words, self.lengths)


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy on the device that nobody waits for. subtle: from pageable memory the copy would wait for all earlier work of a GPU."""
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)


class WordPieces:
    """Cuts words into pieces, each distinct word once."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, limit: int, overlap: int = 32) -> None:
        self._backend = plain_backend(tokenizer)
        self._known: dict[str, tuple[int, ...]] = {}
        self._cut: dict[tuple[str, ...], list[Window]] = {}  # a loop reads the same sentences in every round
        self.before, self.after = special_pieces(tokenizer)
        self.unknown = tokenizer.unk_token_id if tokenizer.unk_token_id is not None else (tokenizer.eos_token_id or 0)
        self.room = max(1, limit - len(self.before) - len(self.after))  # pieces a window has for words
        self.overlap = min(overlap, self.room // 4)

    def words(self, tokens: Iterable[str]) -> list[tuple[int, ...]]:
        """The pieces of each word; one the tokenizer makes nothing of is the unknown piece."""
        tokens = list(tokens)
        new = [token for token in dict.fromkeys(tokens) if token not in self._known]
        if new:
            found = self._backend.encode_batch([[token[:_LETTERS]] for token in new], is_pretokenized=True, add_special_tokens=False)
            self._known.update(zip(new, (tuple(e.ids) or (self.unknown,) for e in found), strict=True))
        return [self._known[token] for token in tokens]

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[list[Window]]:
        """The windows of each sentence; an empty sentence has none."""
        texts = [tuple(tokens) for tokens in sentences]
        new = [tokens for tokens in texts if tokens not in self._cut]
        if len(self._cut) + len(new) > _REMEMBERED:
            self._cut = {}
            new = texts
        self.words(dict.fromkeys(token for tokens in new for token in tokens))
        known = self._known
        made = {tokens: self._windows([known[token] for token in tokens]) for tokens in dict.fromkeys(new)}
        if len(made) <= _REMEMBERED:
            self._cut.update(made)
        return [made[tokens] if tokens in made else self._cut[tokens] for tokens in texts]

    def _windows(self, words: list[tuple[int, ...]]) -> list[Window]:
        if not words:
            return []
        if sum(map(len, words)) <= self.room:
            return [self._one_window(words)]
        words = [pieces[: self.room] for pieces in words]  # only the first piece speaks; a giant word is cut to fit
        sizes = np.array([len(pieces) for pieces in words])
        edges = np.concatenate([[0], np.cumsum(sizes)])
        bounds = _bounds(edges, self.room, self.overlap)
        owner = _owners(edges, bounds)
        windows = []
        for number, (first, last) in enumerate(bounds):
            ids = (*self.before, *(piece for pieces in words[first:last] for piece in pieces), *self.after)
            owned = np.flatnonzero(owner[first:last] == number) + first
            windows.append(Window(np.array(ids), owned, edges[owned] - edges[first] + len(self.before)))
        return windows

    def _one_window(self, words: list[tuple[int, ...]]) -> Window:
        """A sentence that fits, as almost all do: the same without the arithmetic of several windows, in a third of the time."""
        ids, at = list(self.before), []
        for pieces in words:
            at.append(len(ids))
            ids.extend(pieces)
        ids.extend(self.after)
        return Window(np.array(ids), np.arange(len(words)), np.array(at))


def special_pieces(tokenizer: PreTrainedTokenizerFast) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the tokenizer puts around a sentence: ([CLS],) and ([SEP],) for BERT."""
    bare = tokenizer("a", add_special_tokens=False).input_ids
    full = tokenizer("a").input_ids
    start = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
    return tuple(full[:start]), tuple(full[start + len(bare) :])


def pack(sentences: Sequence[Sequence[Window]], together: bool, first_position: int = 0, pad: int = 0, width: int | None = None) -> Batch:
    """Lay the windows of some sentences out in rows: several a row (`together`) or one a row; as wide as the longest unless told."""
    windows = [(s, window) for s, own in enumerate(sentences) for window in own]
    order = sorted(range(len(windows)), key=lambda i: -len(windows[i][1].ids))
    width = width or (len(windows[order[0]][1].ids) if windows else 1)
    rows: list[list[int]] = []
    free: list[int] = []
    for i in order:  # first fit, longest first: rows as wide as the longest window waste next to nothing
        size = len(windows[i][1].ids)
        row = next((r for r, room in enumerate(free) if room >= size), None) if together else None
        if row is None:
            row = len(rows)
            rows.append([])
            free.append(width)
        rows[row].append(i)
        free[row] -= size
    placed = [(r, windows[i][0], windows[i][1]) for r, members in enumerate(rows) for i in members]
    ids = np.full((len(rows), width), pad)
    positions = np.full((len(rows), width), first_position)
    segments = np.zeros((len(rows), width), dtype=np.int64)
    lengths = [sum(len(window.words) for window in own) for own in sentences]
    at = np.zeros(sum(lengths), dtype=np.int64)
    if placed:  # all windows at once: a GPU reads a batch faster than Python walks through it
        sizes = np.array([len(window.ids) for _, _, window in placed])
        number, left = _in_row([len(members) for members in rows], sizes)
        first = np.array([r * width for r, _, _ in placed]) + left
        inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        spots = np.repeat(first, sizes) + inside
        ids.reshape(-1)[spots] = np.concatenate([window.ids for _, _, window in placed])
        positions.reshape(-1)[spots] = inside + first_position
        segments.reshape(-1)[spots] = np.repeat(number, sizes)
        starts = np.concatenate([[0], np.cumsum(lengths)])[[s for _, s, _ in placed]]
        owned = [len(window.words) for _, _, window in placed]
        words = np.repeat(starts, owned) + np.concatenate([window.words for _, _, window in placed])
        at[words] = np.repeat(first, owned) + np.concatenate([window.at for _, _, window in placed])
    numpy = torch.from_numpy
    return Batch(numpy(ids), numpy(positions), numpy(segments), numpy(at), tuple(lengths))


def _in_row(members: Sequence[int], sizes: Ints) -> tuple[Ints, Ints]:
    """For windows in the order of their rows, each row with so many members: the number of each in its row, from 1, and its left edge."""
    before: Ints = np.cumsum(sizes) - sizes
    heads: Ints = np.repeat(np.cumsum(members) - members, members)  # the first window of each one's row
    return np.arange(len(sizes)) - heads + 1, before - before[heads]


def by_length(sentences: Sequence[Sequence[Window]], budget: int) -> list[list[int]]:
    """Sentences grouped for prediction: alike in length, at most `budget` pieces a batch, padding included."""
    sizes = [max((len(window.ids) for window in own), default=0) for own in sentences]
    counts = [len(own) for own in sentences]
    groups: list[list[int]] = []
    rows = 0
    for i in sorted(range(len(sentences)), key=lambda i: -sizes[i]):
        if not counts[i]:
            continue
        if not groups or (rows + counts[i]) * sizes[groups[-1][0]] > budget:
            groups.append([])
            rows = 0
        groups[-1].append(i)
        rows += counts[i]
    return groups


def _bounds(edges: Ints, room: int, overlap: int) -> list[tuple[int, int]]:
    """First and one-past-last word of each window."""
    n = len(edges) - 1
    bounds, first = [], 0
    while True:
        last = int(np.searchsorted(edges, edges[first] + room, side="right")) - 1
        bounds.append((first, last))
        if last >= n:
            return bounds
        first = max(first + 1, int(np.searchsorted(edges, edges[last] - overlap, side="left")))


def _owners(edges: Ints, bounds: list[tuple[int, int]]) -> Ints:
    """Which window reads each word: in an overlap, the left half belongs to the window before, the right half to the one behind."""
    owner = np.zeros(len(edges) - 1, dtype=np.int64)
    for number in range(1, len(bounds)):
        middle = (edges[bounds[number][0]] + edges[bounds[number - 1][1]]) / 2
        first = max(int(np.searchsorted(edges[:-1], middle)), bounds[number][0])
        owner[min(first, bounds[number - 1][1]) : bounds[number][1]] = number
    return owner
