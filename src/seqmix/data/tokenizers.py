"""The ways to cut raw text into tokens, by name.

words     words, numbers, single punctuation marks: the default, as `data.text` cuts
web       the same, but addresses, @names and #tags stay whole
numbers   the same, but a number and the letters behind it are two tokens: 2tsp -> 2, tsp
spaces    at white space only, for text that has been cut before
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from seqmix.data.spans import Offsets
from seqmix.data.text import tokenize
from seqmix.errors import ConfigError

DEFAULT = "words"
_WEB = re.compile(
    r"(?:https?://|www\.)[^\s<>\"]+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{2,63}){1,8}"
    r"|(?<!\w)[@#]\w{1,100}"
)
_BEHIND = ".,;:!?'\")]}"  # what ends a sentence, not an address
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)*)[^\W\d_]+")


def token_offsets(text: str, name: str = DEFAULT) -> Offsets:
    """Return the offsets of the tokens of a raw text.

    >>> [("Mail jo@x.org 2tsp")[a:b] for a, b in token_offsets("Mail jo@x.org 2tsp", "web")]
    ['Mail', 'jo@x.org', '2tsp']
    """
    return TOKENIZERS[tokenizer_name(name)](text)


def tokenizer_name(name: str) -> str:
    """Return the name of a tokenizer that exists."""
    if name not in TOKENIZERS:
        raise ConfigError(f"there is no tokenizer {name!r}; there are {', '.join(TOKENIZERS)}")
    return name


def _web(text: str) -> Offsets:
    """Return the offsets of words, with addresses, @names and #tags whole."""
    matches = ((match.start(), match[0].rstrip(_BEHIND)) for match in _WEB.finditer(text))
    whole = [(start, start + len(address)) for start, address in matches]
    ends = [(0, 0), *whole, (len(text), len(text))]

    def tokens() -> Iterator[tuple[int, int]]:
        for (start, end), (following, _) in pairwise(ends):
            if end > start:
                yield start, end
            yield from ((end + a, end + b) for a, b in tokenize(text[end:following]))

    return tuple(tokens())


def _numbers(text: str) -> Offsets:
    """Return the offsets of words, with numbers apart from the letters behind them."""

    def tokens() -> Iterator[tuple[int, int]]:
        for start, end in tokenize(text):
            match = _NUMBER.fullmatch(text, start, end)
            if match is None:
                yield start, end
            else:
                yield from ((start, match.end(1)), (match.end(1), end))

    return tuple(tokens())


def _spaces(text: str) -> Offsets:
    """Return the offsets of what stands between white space."""
    joined: list[tuple[int, int]] = []
    for start, end in tokenize(text):
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple(joined)


TOKENIZERS: Mapping[str, Callable[[str], Offsets]] = {
    "words": tokenize,
    "web": _web,
    "numbers": _numbers,
    "spaces": _spaces,
}
