"""Read and write labeled sentences in the formats people have.

    from seqmix.data import formats
    for sentence in formats.read("train.conll"): …
    formats.write(sentences, "train.jsonl")

The format is guessed from name and content, or told by its name. Whatever the scheme of the file, sentences come out in BIO.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from seqmix.data.formats import (
    ace05,
    argilla,
    brat,
    conll,
    conllu,
    docbin,
    doccano,
    hf,
    jsonl_spans,
    jsonl_tokens,
    labelstudio,
    prodigy,
    text,
)
from seqmix.data.formats.base import Format, Options
from seqmix.data.formats.records import json_array, json_lines
from seqmix.data.scheme import convert, prefixed, repair
from seqmix.data.sentence import Row, Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.errors import DataError, TagError

# subtle: the order is the order of guessing. A record may fit several formats, and the first that takes it wins.
_MODULES = (
    conll,
    conllu,
    labelstudio,
    argilla,
    prodigy,
    doccano,
    jsonl_spans,
    jsonl_tokens,
    docbin,
    hf,
    ace05,
    brat,
    text,
)
FORMATS: Mapping[str, Format] = {module.FORMAT.name: module.FORMAT for module in _MODULES}

_BIO = {"E-": "I-", "L-": "I-", "S-": "B-", "U-": "B-"}
_HEAD = 1 << 16  # bytes
_ENDED = re.compile(r"\w[.!?]$")  # the last word of a sentence
_PACKED = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"7z\xbc\xaf",
    b"(\xb5/\xfd",
)  # zip, gzip, bzip2, xz, 7z, zstd

__all__ = ["FORMATS", "Format", "Options", "guess", "read", "write"]


def read(
    path: Path | str, format: str | None = None, options: Options | None = None
) -> Iterator[Sentence]:
    """Stream the sentences of a file or folder, spans in BIO."""
    path, options = Path(path), options or Options()
    if not path.exists():
        raise DataError("there is no such file or folder", path)
    _check_place(path)
    chosen = _named(format) if format else guess(path)
    return (
        _inner(sentence, options)
        for sentence in chosen.read(path, options)
        if _has_tokens(sentence, options)
    )


def write(
    sentences: Iterable[Sentence],
    path: Path | str,
    format: str | None = None,
    options: Options | None = None,
) -> None:
    """Write sentences, whole or not at all. What the format cannot hold is an error, or hardened when asked."""
    path, options = Path(path), options or Options()
    writable = {name: known for name, known in FORMATS.items() if known.write is not None}
    chosen = (
        _named(format, FORMATS if format in FORMATS else writable) if format else _by_suffix(path)
    )
    if chosen is None:
        raise DataError(f"which format should it have? Give one of {', '.join(writable)}", path)
    if chosen.write is None:
        raise DataError(
            f"the format {chosen.name} can be read only; there are {', '.join(writable)}", path
        )
    chosen.write(
        (
            _outer(sentence, chosen, options)
            for sentence in sentences
            if _has_tokens(sentence, options)
        ),
        path,
        options,
    )


def guess(path: Path) -> Format:
    """The format of a file or folder, from its name where that settles it, else from its first lines."""
    if path.is_dir():
        for candidate in FORMATS.values():
            if candidate.folder is not None and candidate.folder(path):
                return candidate
        raise DataError(
            f"no known format is recognized in this folder; name one of {', '.join(FORMATS)}", path
        )
    by_name = _by_suffix(path)
    if by_name is not None and by_name.record is None:
        return by_name
    if path.suffix == ".txt" and path.with_suffix(".ann").is_file():
        return FORMATS["brat"]
    head = _head(path)
    records = _first_records(path, head)
    for candidate in FORMATS.values():
        if candidate.record is not None and any(candidate.record(record) for record in records):
            return candidate
    if records and by_name is None:
        raise DataError(
            f"no known format has such records; name one of {', '.join(FORMATS)}", path, 1, head
        )
    return by_name or FORMATS[_by_columns(head)]


def _check_place(path: Path) -> None:
    """Refuse what must not or cannot be read: a folder with a link that leads out of it, and an archive.

    subtle: a folder that came from elsewhere could otherwise have any file of this machine read as its text.
    """
    for file in path.rglob("*") if path.is_dir() else ():
        if file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(path.resolve()):
            raise DataError(
                "this link leads out of its folder; put the file itself there if it belongs to the data",
                file,
            )
    if path.is_file() and _start(path, 6).startswith(_PACKED):
        raise DataError(
            "this is an archive, and archives are not opened; unpack it and name what was in it",
            path,
        )


def _named(name: str, known: Mapping[str, Format] = FORMATS) -> Format:
    if name not in known:
        raise DataError(f"there is no format {name!r}; there are {', '.join(known)}")
    return known[name]


def _by_suffix(path: Path) -> Format | None:
    return next(
        (f for f in FORMATS.values() if path.name.lower().endswith(f.suffixes or ("\0",))), None
    )


def _inner(sentence: Sentence, options: Options) -> Sentence:
    """Span tags in BIO, whatever the file had. Around soft and missing rows only the prefixes change: what a span is stays open there."""
    if not all(tag == OUTSIDE or prefixed(tag) for row in sentence.tags for tag in _names(row)):
        return sentence
    bio: Sequence[Row] = (
        repair([str(tag) for tag in sentence.tags])
        if sentence.hard
        else [_renamed(row) for row in sentence.tags]
    )
    if tuple(bio) == sentence.tags:
        return sentence
    options.counts["rewritten as BIO"] += 1
    return sentence.with_tags(bio)


def _names(row: Row) -> Iterable[str]:
    return (row,) if isinstance(row, str) else row or ()


def _renamed(row: Row) -> Row:
    """E- and L- as I-, S- and U- as B-."""
    if row is None or isinstance(row, str):
        return row if row is None else _BIO.get(row[:2], row[:2]) + row[2:]
    weights: dict[str, float] = {}
    for tag, weight in row.items():
        name = str(_renamed(tag))
        weights[name] = weights.get(name, 0) + weight
    return weights


def _has_tokens(sentence: Sentence, options: Options) -> bool:
    """A sentence without tokens has no place in most formats and no use in any: it is passed over and counted."""
    if not sentence.tokens:
        options.counts["no tokens"] += 1
    return bool(sentence.tokens)


def _outer(sentence: Sentence, format: Format, options: Options) -> Sentence:
    """What the format can hold of a sentence."""
    _check_text(sentence)
    if "soft" not in format.holds and any(isinstance(row, Mapping) for row in sentence.tags):
        if not options.harden:
            raise DataError(
                f"sentence {sentence.id!r} has soft labels, which the format {format.name} cannot hold; "
                "--to harden=yes keeps the heaviest tag, jsonl-tokens keeps all"
            )
        sentence = sentence.hardened()
    if "missing" not in format.holds and sentence.labeled and None in sentence.tags:
        raise DataError(
            f"sentence {sentence.id!r} is labeled in part, which the format {format.name} cannot hold; jsonl-tokens can"
        )
    if "tags" not in format.holds:
        _check_spans(sentence, format)
    if (
        options.scheme is not None
        and sentence.hard
        and any(prefixed(str(tag)) for tag in sentence.tags)
    ):
        return sentence.with_tags(convert([str(tag) for tag in sentence.tags], options.scheme))
    return sentence


def _check_text(sentence: Sentence) -> None:
    """Tokens are not empty, and all text is made of whole characters, so that it can be written as UTF-8."""
    if "" in sentence.tokens:
        raise DataError(
            f"sentence {sentence.id!r} has an empty token", text=" ".join(sentence.tokens)
        )
    for part in (
        sentence.id,
        sentence.text or "",
        *sentence.tokens,
        *(tag for row in sentence.tags for tag in _names(row)),
    ):
        try:
            part.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"sentence {sentence.id!r}: expected whole characters, found half of a surrogate pair",
                text=part,
            ) from error


def _check_spans(sentence: Sentence, format: Format) -> None:
    for tag in sentence.tags:
        if isinstance(tag, str) and tag != OUTSIDE and not (prefixed(tag) and tag[2:]):
            why = f"which the format {format.name} cannot hold; conll can"
            raise TagError(
                f"sentence {sentence.id!r} has a tag that is no B- or I- of a span, {why}", text=tag
            )


def _head(path: Path, limit: int = 50) -> str:
    """The first lines; a file that is one huge line is not read whole."""
    start = _start(path, _HEAD)
    found = start.decode("utf-8-sig", "replace").split("\n")
    if len(start) == _HEAD and len(found) > 1:
        found.pop()  # cut short
    return "\n".join(line.rstrip("\r") for line in found[:limit]).lstrip(" \n")


def _start(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error


def _first_records(path: Path, head: str, limit: int = 20) -> list[dict[str, Any]]:
    """Some records, since the first may be unlabeled and tell nothing; none if it is not JSON, or broken."""
    records: list[dict[str, Any]] = []
    try:
        if head[:1] in ("{", "["):
            found = json_lines(path) if head[0] == "{" else json_array(path)
            records.extend(record for _, record, _ in islice(found, limit))
    except DataError:
        pass  # whoever reads the file says what is wrong with it
    return records


def _by_columns(head: str) -> str:
    """conll for the same number of columns on every line, if they look like more than a line of prose; conllu for its ten."""
    split = [
        line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))
        for line in head.split("\n")
        if line.strip(" \t")
    ]
    rows = [row for row in split if not row[0].startswith("# ") and row[0] != "#"]
    if rows and all(len(row) == 10 and row[0][:1].isdigit() for row in rows):
        return "conllu"
    widths = {len(row) for row in split}
    tagged = (
        "\t" in head
        or any(row[-1] == OUTSIDE or prefixed(row[-1]) for row in split)
        or _like_tags(split, "\n\n" in head)
    )
    return "conll" if not split or (len(widths) == 1 and tagged) else "text"


def _like_tags(rows: list[list[str]], cut: bool) -> bool:
    """Whether many rows end in what could be tags of words (NNP): few, in capitals. Single words are tokens if sentences are apart."""
    last = [row[-1] for row in rows]
    few = len(set(last)) * 2 <= len(last) and all(
        tag.isascii() and tag == tag.upper() and not _ENDED.search(tag) for tag in last
    )
    return len(rows) > 20 and (few if len(rows[0]) > 1 else cut)
