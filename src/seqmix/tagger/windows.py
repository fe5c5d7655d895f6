"""Words to pieces: what the encoder reads, and which piece carries the tag of which word.

The first piece of a word carries its tag.
A sentence longer than the limit becomes several windows that overlap.
Each word is read in the window that shows most of its context, so no word loses its prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.data.window_bounds import Ints, window_bounds, window_owners
from seqmix.starter.guarded import MAX_LETTERS, plain_backend, tokenizing

CHUNK = 4096  # sentences held at a time
MAX_SENTENCES = 30_000  # whose windows are cached
MAX_WORDS = 300_000  # whose pieces are cached, at some 400 bytes each: a crawl has no end of words


@dataclass(frozen=True)
class Window:
    """A stretch of one sentence as the encoder reads it."""

    ids: Ints  # [n_pieces], special pieces included
    words: Ints  # [n_words] the words whose tags are read here
    at: Ints  # [n_words] the places of their first pieces in `ids`


Windows = Sequence[Sequence[Window]]  # of each sentence


@dataclass(frozen=True)
class PlainTokenizer:
    """What is needed of a tokenizer: its backend and the pieces it puts around a sentence."""

    backend: Any  # a `tokenizers.Tokenizer` that neither pads nor truncates
    before: tuple[int, ...]
    after: tuple[int, ...]
    unknown: int  # the piece of a word without any


def plain_tokenizer(tokenizer: Any) -> PlainTokenizer:
    """Return what is needed of a Hugging Face tokenizer."""
    unknown = tokenizer.unk_token_id
    unknown = unknown if unknown is not None else (tokenizer.eos_token_id or 0)
    return PlainTokenizer(plain_backend(tokenizer), *special_pieces(tokenizer), unknown)


class WordPieces:
    """Cuts words into pieces, and sentences into windows; both are cached."""

    def __init__(self, tokenizer: Any, limit: int, overlap: int = 32) -> None:
        plain = tokenizer
        if not isinstance(tokenizer, PlainTokenizer):
            plain = plain_tokenizer(tokenizer)
        self.tokenizer: PlainTokenizer = plain
        self.limit = limit
        self.before, self.after = plain.before, plain.after
        self.cached_pieces: dict[str, tuple[int, ...]] = {}
        self.cached_windows: dict[tuple[str, ...], list[Window]] = {}
        self.room = max(1, limit - len(self.before) - len(self.after))  # pieces for words
        self.overlap = min(overlap, self.room // 4)

    def words(self, tokens: Iterable[str]) -> list[tuple[int, ...]]:
        """Return the pieces of each word; a word without any gets the unknown piece."""
        tokens = list(tokens)
        new = [token for token in dict.fromkeys(tokens) if token not in self.cached_pieces]
        if len(self.cached_pieces) + len(new) > MAX_WORDS:
            self.cached_pieces = {}
            new = list(dict.fromkeys(tokens))
        if new:
            with tokenizing():
                encodings = self.tokenizer.backend.encode_batch(
                    [[token[:MAX_LETTERS]] for token in new],
                    is_pretokenized=True,
                    add_special_tokens=False,
                )
            for token, encoding in zip(new, encodings, strict=True):
                self.cached_pieces[token] = tuple(encoding.ids) or (self.tokenizer.unknown,)
        return [self.cached_pieces[token] for token in tokens]

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[list[Window]]:
        """Return the windows of each sentence; an empty sentence has none."""
        texts = [tuple(tokens) for tokens in sentences]
        cached = {
            tokens: self.cached_windows[tokens] for tokens in texts if tokens in self.cached_windows
        }
        new = dict.fromkeys(tokens for tokens in texts if tokens not in cached)
        if new:
            self.words(dict.fromkeys(token for tokens in new for token in tokens))
            windows = {
                tokens: self._windows([self.cached_pieces[token] for token in tokens])
                for tokens in new
            }
            if len(self.cached_windows) + len(windows) > MAX_SENTENCES:
                self.cached_windows = {}
            if len(windows) <= MAX_SENTENCES:
                self.cached_windows.update(windows)
            cached |= windows
        return [cached[tokens] for tokens in texts]

    def _windows(self, words: list[tuple[int, ...]]) -> list[Window]:
        if not words:
            return []
        if sum(map(len, words)) <= self.room:
            return [self._one_window(words)]
        words = [pieces[: self.room] for pieces in words]  # a giant word is cut to fit
        edges = np.concatenate([[0], np.cumsum([len(pieces) for pieces in words])])
        bounds = window_bounds(edges, self.room, self.overlap)
        owner = window_owners(edges, bounds)
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


def special_pieces(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what the tokenizer puts around a sentence: ([CLS],) and ([SEP],) for BERT."""
    with tokenizing():
        bare = tokenizer("a", add_special_tokens=False).input_ids
        full = tokenizer("a").input_ids
    start = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
    return tuple(full[:start]), tuple(full[start + len(bare) :])


def chunks(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Yield the sentences in lists of at most `CHUNK`."""
    chunk: list[Sentence] = []
    for sentence in sentences:
        chunk.append(sentence)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


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


def word_places(sentences: Windows, windows: Sequence[Window], first: Ints) -> tuple[Ints, Ints]:
    """Return the place of each word's first piece, by sentence, and the words per sentence.

    `first` holds the places at which the windows start.
    """
    owned = np.fromiter((len(window.at) for window in windows), dtype=np.int64, count=len(windows))
    at = np.repeat(first, owned) + joined([window.at for window in windows])
    if all(len(sentence) == 1 for sentence in sentences):
        return at, owned
    sentence_of = np.repeat(np.arange(len(sentences)), [len(sentence) for sentence in sentences])
    lengths = np.bincount(sentence_of, weights=owned, minlength=len(sentences)).astype(np.int64)
    starts = (np.cumsum(lengths) - lengths)[sentence_of]
    ordered = np.empty_like(at)
    ordered[np.repeat(starts, owned) + joined([window.words for window in windows])] = at
    return ordered, lengths


def joined(parts: Sequence[Ints]) -> Ints:
    """Return the parts as one array, also if there are none."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def sizes_of(windows: Sequence[Window]) -> Ints:
    """Return the number of pieces of each window."""
    return np.fromiter((len(window.ids) for window in windows), dtype=np.int64, count=len(windows))
