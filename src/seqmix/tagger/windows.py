"""Words to pieces: what the encoder reads, and which piece carries the tag of which word.

The first piece of a word carries its tag.
A sentence longer than the limit becomes several windows that overlap.
Each word is read in the window that shows most of its context, so no word loses its prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from seqmix.starter.guarded import MAX_LETTERS, tokenizing
from seqmix.starter.loader import plain_backend

Ints = NDArray[np.int64]
_MAX_SENTENCES = 30_000  # whose windows are cached
_MAX_WORDS = 300_000  # whose pieces are cached, at some 400 bytes each: a crawl has no end of words


@dataclass(frozen=True)
class Window:
    """A stretch of one sentence as the encoder reads it."""

    ids: Ints  # [n_pieces], special pieces included
    words: Ints  # [n_words] the words whose tags are read here
    at: Ints  # [n_words] the places of their first pieces in `ids`


class WordPieces:
    """Cuts words into pieces, and sentences into windows; both are cached."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, limit: int, overlap: int = 32) -> None:
        self._backend = plain_backend(tokenizer)
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._encoded: dict[tuple[str, ...], list[Window]] = {}
        self.before, self.after = special_pieces(tokenizer)
        unknown = tokenizer.unk_token_id
        self.unknown = unknown if unknown is not None else (tokenizer.eos_token_id or 0)
        self.room = max(1, limit - len(self.before) - len(self.after))  # pieces for words
        self.overlap = min(overlap, self.room // 4)

    def words(self, tokens: Iterable[str]) -> list[tuple[int, ...]]:
        """Return the pieces of each word; a word without any gets the unknown piece."""
        tokens = list(tokens)
        new = [token for token in dict.fromkeys(tokens) if token not in self._pieces]
        if len(self._pieces) + len(new) > _MAX_WORDS:
            self._pieces = {}
            new = list(dict.fromkeys(tokens))
        if new:
            with tokenizing():
                encodings = self._backend.encode_batch(
                    [[token[:MAX_LETTERS]] for token in new],
                    is_pretokenized=True,
                    add_special_tokens=False,
                )
            for token, encoding in zip(new, encodings, strict=True):
                self._pieces[token] = tuple(encoding.ids) or (self.unknown,)
        return [self._pieces[token] for token in tokens]

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[list[Window]]:
        """Return the windows of each sentence; an empty sentence has none."""
        texts = [tuple(tokens) for tokens in sentences]
        cached = {tokens: self._encoded[tokens] for tokens in texts if tokens in self._encoded}
        new = dict.fromkeys(tokens for tokens in texts if tokens not in cached)
        if new:
            self.words(dict.fromkeys(token for tokens in new for token in tokens))
            windows = {
                tokens: self._windows([self._pieces[token] for token in tokens]) for tokens in new
            }
            if len(self._encoded) + len(windows) > _MAX_SENTENCES:
                self._encoded = {}
            if len(windows) <= _MAX_SENTENCES:
                self._encoded.update(windows)
            cached |= windows
        return [cached[tokens] for tokens in texts]

    def _windows(self, words: list[tuple[int, ...]]) -> list[Window]:
        if not words:
            return []
        if sum(map(len, words)) <= self.room:
            return [self._one_window(words)]
        words = [pieces[: self.room] for pieces in words]  # a giant word is cut to fit
        edges = np.concatenate([[0], np.cumsum([len(pieces) for pieces in words])])
        bounds = _bounds(edges, self.room, self.overlap)
        owner = _owners(edges, bounds)
        windows = []
        for number, (first, last) in enumerate(bounds):
            inside = (piece for pieces in words[first:last] for piece in pieces)
            ids = np.array((*self.before, *inside, *self.after))
            owned = np.flatnonzero(owner[first:last] == number) + first
            windows.append(Window(ids, owned, edges[owned] - edges[first] + len(self.before)))
        return windows

    def _one_window(self, words: list[tuple[int, ...]]) -> Window:
        """Return the window of a sentence that fits, in a third of the time."""
        ids, at = list(self.before), []
        for pieces in words:
            at.append(len(ids))
            ids.extend(pieces)
        ids.extend(self.after)
        return Window(np.array(ids), np.arange(len(words)), np.array(at))


def special_pieces(tokenizer: PreTrainedTokenizerFast) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what the tokenizer puts around a sentence: ([CLS],) and ([SEP],) for BERT."""
    with tokenizing():
        bare = tokenizer("a", add_special_tokens=False).input_ids
        full = tokenizer("a").input_ids
    start = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
    return tuple(full[:start]), tuple(full[start + len(bare) :])


def _bounds(edges: Ints, room: int, overlap: int) -> list[tuple[int, int]]:
    """Return the first and one-past-last word of each window."""
    n = len(edges) - 1
    bounds, first = [], 0
    while True:
        last = int(np.searchsorted(edges, edges[first] + room, side="right")) - 1
        bounds.append((first, last))
        if last >= n:
            return bounds
        first = max(first + 1, int(np.searchsorted(edges, edges[last] - overlap, side="left")))


def _owners(edges: Ints, bounds: list[tuple[int, int]]) -> Ints:
    """Return the window that reads each word; an overlap is halved between its two windows."""
    owner = np.zeros(len(edges) - 1, dtype=np.int64)
    for number in range(1, len(bounds)):
        middle = (edges[bounds[number][0]] + edges[bounds[number - 1][1]]) / 2
        first = max(int(np.searchsorted(edges[:-1], middle)), bounds[number][0])
        owner[min(first, bounds[number - 1][1]) : bounds[number][1]] = number
    return owner
