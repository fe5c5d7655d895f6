"""CoNLL columns: one token per line, an empty line between sentences.

Columns are separated by a tab, or by spaces if the line has no tab; -DOCSTART- lines are skipped.
A line that starts with `#` is a token, as in real files, unless `Options.comment` says otherwise.
A tag of `_` is a missing row.
An empty token before a tab is read as U+FFFD and counted: the Broad Twitter Corpus has seven.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from seqmix.data.files import lines, replacing
from seqmix.data.formats.base import Format, Options, visible
from seqmix.data.sentence import DOCSTART, Row, Sentence
from seqmix.errors import DataError, TagError

MISSING = "_"
_BOM = "\ufeff"


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield sentences as `stem:number`; a file with one column is unlabeled text."""
    rows: list[list[str]] = []
    number = width = 0
    for line, text in lines(path):
        if text.strip(" \t"):
            if options.comment and text.startswith(options.comment):
                continue
            columns = text.split("\t") if "\t" in text else re.split(" +", text.strip(" "))
            if columns[0] == DOCSTART:
                continue
            width = width or len(columns)
            if len(columns) != width:
                raise DataError(
                    f"expected {width} columns as in the lines above, found {len(columns)}",
                    path,
                    line,
                    text,
                )
            indices = (options.token_column, options.tag_column)
            rows.append([_column(columns, i, path, line, text) for i in indices])
            if not rows[-1][1]:
                raise DataError(f"expected a tag in column {options.tag_column}", path, line, text)
        elif rows:
            number += 1
            yield _sentence(f"{path.stem}:{number}", rows, width, options)
            rows = []
    if rows:
        yield _sentence(f"{path.stem}:{number + 1}", rows, width, options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write two columns separated by a tab."""
    with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
                if token == DOCSTART:
                    raise DataError(
                        f"sentence {sentence.id!r}: readers skip a token {DOCSTART}; "
                        "another format can hold it"
                    )
                if token.startswith(_BOM) and not file.tell():
                    file.write(_BOM)  # readers drop the first one
                file.write(f"{writable(token, sentence)}\t{writable_tag(tag, sentence)}\n")
            file.write("\n")


def writable(token: str, sentence: Sentence) -> str:
    """Return the token; one that does not fit into a column is an error."""
    if not token.strip(" ") or any(c in token for c in "\t\n\r"):
        raise DataError(
            f"sentence {sentence.id!r}: "
            "columns cannot hold a token that is empty or has a tab or line end",
            text=token,
        )
    return token


def writable_tag(tag: Row, sentence: Sentence) -> str:
    """Return the tag, `_` for a missing row; one that would not read back the same is an error."""
    if tag is None:
        return MISSING
    if (
        not isinstance(tag, str)
        or tag == MISSING
        or not tag.strip(" ")
        or any(c in tag for c in "\t\n\r")
    ):
        raise TagError(
            f"sentence {sentence.id!r}: "
            "columns cannot hold a tag that is empty, _ or has a tab or line end",
            text=str(tag),
        )
    return tag


def _column(columns: list[str], index: int, path: Path, line: int, text: str) -> str:
    try:
        return columns[index]
    except IndexError:
        raise DataError(
            f"there is no column {index}; the line has {len(columns)}, counted from 0",
            path,
            line,
            text,
        ) from None


def _sentence(id: str, rows: list[list[str]], width: int, options: Options) -> Sentence:
    tags = () if width == 1 else tuple(None if tag == MISSING else tag for _, tag in rows)
    return Sentence(id, visible((token for token, _ in rows), options), tags)


FORMAT = Format(
    "conll",
    read,
    write,
    suffixes=(".conll", ".bio", ".iob", ".iob2", ".tsv"),
    holds=frozenset({"tokens", "tags", "missing"}),
)
