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
from seqmix.errors import DataError

UNSEEN = "\ufffd"  # stands for a token that is empty in the file, so that tags and tokens stay side by side


@dataclass(frozen=True)
class Options:
    """How to read or write; each format takes what concerns it."""

    token_column: int = 0  # CoNLL columns; negative counts from the right
    tag_column: int = -1
    comment: str = ""  # CoNLL columns: lines that start with this are no tokens
    key: str = "UPOS"  # CoNLL-U: UPOS, XPOS or a key of the MISC column. ACE: TYPE for event types; anything else gives subtypes
    scheme: Scheme | None = None  # the scheme to write; reading understands them all
    misaligned: Misaligned = "error"  # a character span that cuts a token
    harden: bool = (
        False  # write soft rows as their heaviest tag where the format holds no soft rows
    )
    counts: Counter[str] = field(
        default_factory=Counter
    )  # what was mended on the way, filled as sentences pass


@dataclass(frozen=True)
class Format:
    """One file format. `holds` names what survives a round trip besides hard labels on spans.

    tokens: any cut of the text, not only our tokenizer's · tags: tags that are no spans (NOUN) · soft, missing: such rows ·
    id · text: the raw text
    """

    name: str
    read: Callable[[Path, Options], Iterator[Sentence]]
    write: Callable[[Iterable[Sentence], Path, Options], None] | None
    suffixes: tuple[str, ...] = ()  # file name endings that settle the matter
    record: Callable[[dict[str, Any]], bool] | None = None  # recognizes one JSON record
    folder: Callable[[Path], bool] | None = None  # recognizes a folder
    holds: frozenset[str] = frozenset()


@contextmanager
def at(path: Path, line: int | None = None, text: str | None = None) -> Iterator[None]:
    """Errors raised inside learn the place in the file they belong to."""
    try:
        yield
    except DataError as error:
        if error.path is not None:
            raise
        raise type(error)(
            error.expected, path, line, error.text if error.text is not None else text
        ) from error


def visible(tokens: Iterable[str], options: Options) -> tuple[str, ...]:
    """The tokens; an empty one becomes the replacement character and is counted."""
    found = tuple(tokens)
    empty = sum(not token.strip(" ") for token in found)
    if not empty:
        return found
    options.counts["empty token"] += empty
    return tuple(token if token.strip(" ") else UNSEEN for token in found)


def writable_folder(path: Path, own: Callable[[Path], bool]) -> None:
    """Refuse to replace a folder that holds anything but files of the format."""
    strange = (
        next((file for file in path.rglob("*") if file.is_file() and not own(file)), None)
        if path.is_dir()
        else None
    )
    if strange is not None:
        raise DataError(
            "the folder to write holds other files; name a new or empty one",
            path,
            None,
            strange.name,
        )
