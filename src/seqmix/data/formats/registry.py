"""All formats, and which one a file has."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
from seqmix.data.formats.base import Format
from seqmix.data.formats.records import json_array, json_lines
from seqmix.data.overwriting import other_file
from seqmix.data.spans import OUTSIDE, prefixed
from seqmix.errors import DataError

# This is the order of guessing: a record may fit several formats; the first one wins.
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

_HEAD = 1 << 16  # bytes
_SENTENCE_END = re.compile(r"\w[.!?]$")


def format_named(name: str, formats: Mapping[str, Format] = FORMATS) -> Format:
    """Return the format of this name; an unknown one is an error that lists the names."""
    if name not in formats:
        raise DataError(f"there is no format {name!r}; there are {', '.join(formats)}")
    return formats[name]


def by_suffix(path: Path) -> Format | None:
    """Return the format whose suffix the file has, if any."""
    name = path.name.lower()
    return next((f for f in FORMATS.values() if name.endswith(f.suffixes or ("\0",))), None)


def guess(path: Path) -> Format:
    """Return the format of a file or folder, by its name if that is enough, or by its content."""
    if path.is_dir():
        for candidate in FORMATS.values():
            if candidate.folder is not None and candidate.folder(path):
                return candidate
        raise DataError(
            f"no known format is recognized in this folder; name one of {', '.join(FORMATS)}", path
        )
    by_name = by_suffix(path)
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


def refuse_other_file(path: Path, chosen: Format) -> None:
    """Refuse to write over a file that is not of this format; an empty one may be replaced."""
    head = _head(path).strip() if path.is_file() else ""
    if head in ("", "[]") or chosen.folder is not None:  # a folder is `replacing`'s concern
        return
    if chosen.record is not None:
        records = _first_records(path, head)
        is_like = any(f.record(r) for f in FORMATS.values() for r in records if f.record)
    else:
        is_like = path.name.lower().endswith(chosen.suffixes) or guess(path) is chosen
    if not is_like:
        raise other_file(path, chosen.name)


def first_bytes(path: Path, size: int) -> bytes:
    """Return the start of a file."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error


def _head(path: Path, limit: int = 50) -> str:
    """Return the first lines, but no more than 64 KiB: a file may be a single huge line."""
    start = first_bytes(path, _HEAD)
    lines = start.decode("utf-8-sig", "replace").split("\n")
    if len(start) == _HEAD and len(lines) > 1:
        lines.pop()  # cut short
    return "\n".join(line.rstrip("\r") for line in lines[:limit]).lstrip(" \n")


def _first_records(path: Path, head: str, limit: int = 20) -> list[dict[str, Any]]:
    """Return several JSON records, since the first may be unlabeled; none if it is not JSON."""
    records: list[dict[str, Any]] = []
    try:
        if head[:1] in ("{", "["):
            stream = json_lines(path) if head[0] == "{" else json_array(path)
            records.extend(record for _, record, _ in islice(stream, limit))
    except DataError:
        pass  # reading the file will report it
    return records


def _by_columns(head: str) -> str:
    """Return conllu for its ten columns, conll for equal columns that look like tags, or text."""
    rows = [
        line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))
        for line in head.split("\n")
        if line.strip(" \t")
    ]
    words = [row for row in rows if not row[0].startswith("# ") and row[0] != "#"]
    if words and all(len(row) == 10 and row[0][:1].isdigit() for row in words):
        return "conllu"
    widths = {len(row) for row in rows}
    tagged = (
        "\t" in head
        or any(row[-1] == OUTSIDE or prefixed(row[-1]) for row in rows)
        or _look_tagged(rows, "\n\n" in head)
    )
    return "conll" if not rows or (len(widths) == 1 and tagged) else "text"


def _look_tagged(rows: list[list[str]], separated: bool) -> bool:
    """Whether many rows end in what could be tags (NNP): few different ones, in capitals.

    Single words are tokens if sentences are `separated`.
    """
    last = [row[-1] for row in rows]
    few = len(set(last)) * 2 <= len(last) and all(
        tag.isascii() and tag == tag.upper() and not _SENTENCE_END.search(tag) for tag in last
    )
    return len(rows) > 20 and (few if len(rows[0]) > 1 else separated)
