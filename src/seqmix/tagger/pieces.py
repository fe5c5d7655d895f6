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

from seqmix.starter.guarded import tokenizing
from seqmix.starter.loader import plain_backend

Ints = NDArray[np.int64]
_REMEMBERED = 30_000  # sentences whose windows are kept
_KNOWN = 300_000  # words whose pieces are kept, at some 400 bytes each: a crawl never runs out of new ones
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
    words: (
        torch.Tensor
    )  # [n_words] index of each word's first piece in the flattened rows, sentence by sentence
    lengths: tuple[int, ...]  # words a sentence

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device, without waiting for the copy."""
        ids, positions, segments, words = (
            on_device(t, device) for t in (self.ids, self.positions, self.segments, self.words)
        )
        return Batch(ids, positions, segments, words, self.lengths)


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy on the device that nobody waits for. subtle: from pageable memory the copy would wait for all earlier work of a GPU."""
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)


class WordPieces:
    """Cuts words into pieces, each distinct word once."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, limit: int, overlap: int = 32) -> None:
        self._backend = plain_backend(tokenizer)
        self._known: dict[str, tuple[int, ...]] = {}
        self._cut: dict[
            tuple[str, ...], list[Window]
        ] = {}  # a loop reads the same sentences in every round
        self.before, self.after = special_pieces(tokenizer)
        self.unknown = (
            tokenizer.unk_token_id
            if tokenizer.unk_token_id is not None
            else (tokenizer.eos_token_id or 0)
        )
        self.room = max(
            1, limit - len(self.before) - len(self.after)
        )  # pieces a window has for words
        self.overlap = min(overlap, self.room // 4)

    def words(self, tokens: Iterable[str]) -> list[tuple[int, ...]]:
        """The pieces of each word; one the tokenizer makes nothing of is the unknown piece."""
        tokens = list(tokens)
        new = [token for token in dict.fromkeys(tokens) if token not in self._known]
        if len(self._known) + len(new) > _KNOWN:
            self._known = {}
            new = list(dict.fromkeys(tokens))
        if new:
            with tokenizing():
                found = self._backend.encode_batch(
                    [[token[:_LETTERS]] for token in new],
                    is_pretokenized=True,
                    add_special_tokens=False,
                )
            self._known.update(
                zip(new, (tuple(e.ids) or (self.unknown,) for e in found), strict=True)
            )
        return [self._known[token] for token in tokens]

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[list[Window]]:
        """The windows of each sentence; an empty sentence has none."""
        texts = [tuple(tokens) for tokens in sentences]
        found = [self._cut.get(tokens) for tokens in texts]
        new = dict.fromkeys(
            tokens for tokens, windows in zip(texts, found, strict=True) if windows is None
        )
        if not new:
            return found  # type: ignore[return-value]  # none is None
        self.words(dict.fromkeys(token for tokens in new for token in tokens))
        known = self._known
        made = {tokens: self._windows([known[token] for token in tokens]) for tokens in new}
        if len(self._cut) + len(made) > _REMEMBERED:
            self._cut = {}
        if len(made) <= _REMEMBERED:
            self._cut.update(made)
        return [
            made[tokens] if windows is None else windows
            for tokens, windows in zip(texts, found, strict=True)
        ]

    def _windows(self, words: list[tuple[int, ...]]) -> list[Window]:
        if not words:
            return []
        if sum(map(len, words)) <= self.room:
            return [self._one_window(words)]
        words = [
            pieces[: self.room] for pieces in words
        ]  # only the first piece speaks; a giant word is cut to fit
        sizes = np.array([len(pieces) for pieces in words])
        edges = np.concatenate([[0], np.cumsum(sizes)])
        bounds = _bounds(edges, self.room, self.overlap)
        owner = _owners(edges, bounds)
        windows = []
        for number, (first, last) in enumerate(bounds):
            ids = (
                *self.before,
                *(piece for pieces in words[first:last] for piece in pieces),
                *self.after,
            )
            owned = np.flatnonzero(owner[first:last] == number) + first
            windows.append(
                Window(np.array(ids), owned, edges[owned] - edges[first] + len(self.before))
            )
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
    with tokenizing():
        bare = tokenizer("a", add_special_tokens=False).input_ids
        full = tokenizer("a").input_ids
    start = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
    return tuple(full[:start]), tuple(full[start + len(bare) :])


def pack(
    sentences: Sequence[Sequence[Window]], first_position: int = 0, width: int | None = None
) -> Batch:
    """Lay the windows of some sentences out in rows, several a row; as wide as the longest unless told."""
    windows = [window for own in sentences for window in own]
    sizes = _sizes(windows)
    width = width or max(sizes.tolist(), default=1)
    row = _fitted(sizes.tolist(), width)
    number, left = _in_row(row, sizes)
    shape = max(row.tolist(), default=-1) + 1, width
    ids, positions, segments = (
        np.zeros(shape, dtype=np.int64),
        np.full(shape, first_position),
        np.zeros(shape, dtype=np.int64),
    )
    inside = _inside(sizes)
    spots = np.repeat(row * width + left, sizes) + inside
    ids.reshape(-1)[spots] = _joined([window.ids for window in windows])
    positions.reshape(-1)[spots] = inside + first_position
    segments.reshape(-1)[spots] = np.repeat(number, sizes)
    at, lengths = _words(sentences, windows, row * width + left)
    numpy = torch.from_numpy
    return Batch(numpy(ids), numpy(positions), numpy(segments), numpy(at), tuple(lengths.tolist()))


def spread(
    sentences: Sequence[Sequence[Window]], device: torch.device, first_position: int = 0
) -> tuple[Batch, torch.Tensor]:
    """One window a row on the device, and the words a sentence.

    Only what cannot be worked out there is sent, in one piece: a GPU reads a batch faster than the host could lay it out.
    """
    windows = [window for own in sentences for window in own]
    sizes = _sizes(windows)
    width = max(sizes.tolist(), default=1)
    at, lengths = _words(sentences, windows, np.arange(len(windows)) * width)
    parts = [_joined([window.ids for window in windows]), sizes, at, lengths]
    flat, size, words, ends = on_device(torch.from_numpy(np.concatenate(parts)), device).split(
        [len(part) for part in parts]
    )
    place = torch.arange(width, device=device)
    there = place < size[:, None]
    ids = torch.zeros(there.shape, dtype=torch.long, device=device).masked_scatter_(there, flat)
    positions = (place + first_position).repeat(len(ids), 1)  # not a view: torch does not pin those
    return Batch(ids, positions, there.long(), words, tuple(lengths.tolist())), ends


def _words(
    sentences: Sequence[Sequence[Window]], windows: Sequence[Window], first: Ints
) -> tuple[Ints, Ints]:
    """Where each word's first piece stands when the windows start there, sentence by sentence; and words a sentence."""
    owned = np.fromiter((len(window.at) for window in windows), dtype=np.int64, count=len(windows))
    at = np.repeat(first, owned) + _joined([window.at for window in windows])
    if all(len(own) == 1 for own in sentences):
        return at, owned
    belongs = np.repeat(np.arange(len(sentences)), [len(own) for own in sentences])
    lengths = np.bincount(belongs, weights=owned, minlength=len(sentences)).astype(np.int64)
    starts = (np.cumsum(lengths) - lengths)[belongs]
    ordered = np.empty_like(at)
    ordered[np.repeat(starts, owned) + _joined([window.words for window in windows])] = at
    return ordered, lengths


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _inside(sizes: Ints) -> Ints:
    """0 … n - 1 for each size n."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _sizes(windows: Sequence[Window]) -> Ints:
    """Pieces a window."""
    return np.fromiter((len(window.ids) for window in windows), dtype=np.int64, count=len(windows))


def _fitted(sizes: Sequence[int], width: int) -> Ints:
    """The row of each window: first fit, longest first. Rows as wide as the longest window waste next to nothing."""
    row = np.zeros(len(sizes), dtype=np.int64)
    free: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        row[i] = next((r for r, room in enumerate(free) if room >= sizes[i]), len(free))
        if row[i] == len(free):
            free.append(width)
        free[row[i]] -= sizes[i]
    return row


def _in_row(row: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """For windows that stand in these rows: the number of each in its row, from 1, and its left edge; the longest stand first."""
    order = np.lexsort((-sizes, row))
    before = np.cumsum(sizes[order]) - sizes[order]
    heads = np.searchsorted(row[order], row[order])  # the first window of each one's row
    number, left = np.empty_like(row), np.empty_like(row)
    number[order] = np.arange(len(row)) - heads + 1
    left[order] = before - before[heads]
    return number, left


def by_length(sentences: Sequence[Sequence[Window]], budget: int) -> list[list[int]]:
    """Sentences grouped for prediction: alike in length, at most `budget` pieces a batch, padding included."""
    sizes = np.array(
        [
            len(own[0].ids)
            if len(own) == 1
            else max((len(window.ids) for window in own), default=0)
            for own in sentences
        ]
    )
    order = np.argsort(-sizes, kind="stable")[
        : np.count_nonzero(sizes)
    ]  # a sentence without tokens has nothing to read
    rows = np.cumsum([len(sentences[i]) for i in order])
    groups, first, done = [], 0, 0  # sentences and rows in earlier groups
    while first < len(order):
        last = max(
            first + 1,
            int(np.searchsorted(rows, done + budget // sizes[order[first]], side="right")),
        )
        groups.append(order[first:last].tolist())
        first, done = last, int(rows[last - 1])
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
