"""What a format is: two functions, what it can hold, and how to recognize it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqmix.data.scheme import Scheme
from seqmix.data.sentence import Sentence
from seqmix.data.text import Misaligned
from seqmix.data.tokenizers import DEFAULT
from seqmix.errors import DataError

UNSEEN = "\ufffd"  # replaces a token that is empty in the file, so that tags keep their tokens


@dataclass(frozen=True)
class Options:
    """How to read or write; each format uses what concerns it."""

    token_column: int = 0
    """The column of the tokens in CoNLL files; negative numbers count from the right."""
    tag_column: int = -1
    """The column of the tags in CoNLL files."""
    comment: str = ""
    """What starts the lines of CoNLL files that are not tokens."""
    key: str = "UPOS"
    """CoNLL-U: UPOS, XPOS or a key of MISC. ACE: TYPE for event types, else subtypes."""
    scheme: Scheme | None = None
    """The scheme to write; reading understands them all."""
    misaligned: Misaligned = "error"
    """What to do with a character span that cuts a token: error, expand or drop."""
    tokenizer: str = DEFAULT
    """How raw text is cut into tokens."""
    harden: bool = False
    """Write the heaviest tag of soft rows where the format holds none."""
    counts: Counter[str] = field(default_factory=Counter)
    """Repairs by kind, counted as sentences pass."""


@dataclass(frozen=True)
class Format:
    """One file format."""

    name: str
    read: Callable[[Path, Options], Iterator[Sentence]]
    write: Callable[[Iterable[Sentence], Path, Options], None] | None
    """None for a format that can be read only."""
    suffixes: tuple[str, ...] = ()
    """Endings of file names that settle which format a file has."""
    record: Callable[[dict[str, Any]], bool] | None = None
    """Whether a JSON record is of this format."""
    folder: Callable[[Path], bool] | None = None
    """Whether a folder is of this format."""
    holds: frozenset[str] = frozenset()
    """What survives a round trip besides hard labels on spans: `tokens` (any cut of the text, not
    only our tokenizer's), `tags` (tags that are not spans, such as NOUN), `soft` and `missing`
    rows, the `id`, and the raw `text`."""


@contextmanager
def at(path: Path, line: int | None = None, text: str | None = None) -> Iterator[None]:
    """Add the place in the file to errors raised inside."""
    try:
        yield
    except DataError as error:
        if error.path is not None:
            raise
        shown = error.text if error.text is not None else text
        raise type(error)(error.expected, path, line, shown) from error


def visible(tokens: Iterable[str], options: Options) -> tuple[str, ...]:
    """Return the tokens; an empty one becomes the replacement character and is counted."""
    tokens = tuple(tokens)
    empty = sum(not token.strip(" ") for token in tokens)
    if not empty:
        return tokens
    options.counts["empty token"] += empty
    return tuple(token if token.strip(" ") else UNSEEN for token in tokens)


def decode_utf8(raw: bytes, path: Path) -> str:
    """Return the text of a whole file; a byte that is not UTF-8 is an error that names its line."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        around = raw[max(0, error.start - 40) : error.end + 40]
        raise DataError(
            "expected UTF-8 text", path, line, around.decode("utf-8", "backslashreplace")
        ) from error


def read_bytes(path: Path) -> bytes:
    """Return the content of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error
