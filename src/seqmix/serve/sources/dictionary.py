"""Find the texts of a dictionary in a sentence, whole tokens only, the longest first.

Texts and tokens are cut into the same pieces, so that `U.S.` is found whether the project's
tokenizer keeps it whole or not; a match must begin and end where tokens do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from seqmix.data.sentence import Sentence
from seqmix.data.tokenizers import token_offsets
from seqmix.serve.store.records import Mark

_FINEST = "numbers"  # no tokenizer makes smaller tokens


class Dictionary:
    """Texts by their pieces."""

    def __init__(self, texts: Iterable[tuple[str, str]], ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        self._tags: dict[tuple[str, ...], str] = {}
        lengths: dict[str, set[int]] = {}  # by first piece
        for text, tag in texts:
            cut = tuple(self._cut([text[a:b] for a, b in token_offsets(text, _FINEST)])[0])
            if cut:
                self._tags[cut] = tag
                lengths.setdefault(cut[0], set()).add(len(cut))
        self._lengths = {first: sorted(ns, reverse=True) for first, ns in lengths.items()}

    def marks(self, sentence: Sentence) -> list[Mark]:
        """Return the matches in order; where two overlap, the one that begins first."""
        cut, tokens = self._cut(sentence.tokens)
        marks: list[Mark] = []
        at = 0
        while at < len(cut):
            match = self._match(cut, tokens, at)
            if match is None:
                at += 1
                continue
            end, tag = match
            marks.append(Mark(tokens[at], tokens[end - 1] + 1, tag))
            at = end
        return marks

    def _match(self, cut: Sequence[str], tokens: Sequence[int], at: int) -> tuple[int, str] | None:
        """Return the end and the tag of the longest match that begins at a piece."""
        if at and tokens[at - 1] == tokens[at]:
            return None  # in the middle of a token
        for n in self._lengths.get(cut[at], ()):
            end = at + n
            whole = end <= len(cut) and (end == len(cut) or tokens[end] != tokens[end - 1])
            if whole and (tag := self._tags.get(tuple(cut[at:end]))) is not None:
                return end, tag
        return None

    def _cut(self, tokens: Sequence[str]) -> tuple[list[str], list[int]]:
        """Return the pieces of tokens, and the token that each is of."""
        cut: list[str] = []
        owners: list[int] = []
        for at, token in enumerate(tokens):
            some = pieces(token.casefold() if self._ignore_case else token)
            cut += some
            owners += [at] * len(some)
        return cut, owners


@lru_cache(maxsize=1 << 16)
def pieces(token: str) -> tuple[str, ...]:
    """Return the pieces of a token: U.S. -> U . S . and 10mg -> 10 mg."""
    return tuple(token[a:b] for a, b in token_offsets(token, _FINEST))
