"""Raw text on its way into a project: lines, paragraphs, a column of a table, or any format that is read."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seqmix.app.console import say
from seqmix.app.read_data import read_data
from seqmix.data import formats
from seqmix.data.files import lines
from seqmix.data.samples import is_sample
from seqmix.data.sentence import Sentence
from seqmix.data.text import from_text
from seqmix.errors import ConfigError, DataError

UNITS = ("line", "paragraph")


def read_text(
    name: str,
    format: str | None,
    options: formats.Options,
    column: str | None = None,
    unit: str = "line",
) -> Iterable[Sentence]:
    """The sentences of a file, a folder or a sample; of a table, one a row."""
    path = Path(name)
    if unit not in UNITS:
        raise ConfigError(f"--unit is {unit!r}; it must be one of {', '.join(UNITS)}")
    if is_sample(name) and not path.exists():
        return read_data(name, format, options)
    if not path.exists():
        raise DataError("there is no such file or folder", path)
    if column is not None or (path.suffix.lower() == ".csv" and format is None):
        return _table(path, column)
    if unit == "paragraph":
        if format not in (None, "text") or not path.is_file():
            raise ConfigError("--unit paragraph is for a file of raw text")
        return _paragraphs(path)
    if (
        path.is_dir()
        and format is None
        and next(path.rglob("*.txt"), None) is not None
        and not _recognized(path)
    ):
        format = "brat"  # which is what a folder of text is, before anybody has labeled it
        _say_left_out(path)
    return formats.read(path, format, options)


def _say_left_out(folder: Path) -> None:
    """Name what a folder of text holds besides."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    others = sorted(file.name for file in files if file.suffix not in (".txt", ".ann"))
    if others:
        shown = ", ".join(others[:10]) + (
            f" and {len(others) - 10} more" if len(others) > 10 else ""
        )
        say(f"{folder}: left out, since only .txt is read: {shown}")


def _recognized(folder: Path) -> bool:
    return any(
        found.folder is not None and found.folder(folder) for found in formats.FORMATS.values()
    )


def _paragraphs(path: Path) -> Iterator[Sentence]:
    """Lines up to an empty one, line ends kept; `stem:line` of the first."""
    held: list[str] = []
    first = 0
    for number, line in lines(path):
        if line.strip():
            first = first if held else number
            held.append(line)
        elif held:
            yield from_text(f"{path.stem}:{first}", "\n".join(held))
            held = []
    if held:
        yield from_text(f"{path.stem}:{first}", "\n".join(held))


def _table(path: Path, column: str | None) -> Iterator[Sentence]:
    """One column of a CSV file (or .tsv), by the name in its first line; rows without text are passed over."""
    if column is None:
        raise ConfigError(
            f"which column of {path} holds the text? Name it with --column, such as --column text"
        )
    with _opened(path) as table:
        names = table.fieldnames or []
        if column not in names:
            raise DataError(
                f"there is no column {column!r}; there are {', '.join(repr(name) for name in names) or 'none'}",
                path,
                1,
            )
        for row in table:
            text = row.get(column) or ""
            if text.strip():
                yield from_text(f"{path.stem}:{table.line_num}", text)


@contextmanager
def _opened(path: Path) -> Iterator[csv.DictReader[str]]:
    limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a cell may be a whole document
    table: csv.DictReader[str] | None = None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            yield table
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        what = (
            "expected UTF-8 text"
            if isinstance(error, UnicodeDecodeError)
            else f"cannot read this table: {error}"
        )
        raise DataError(what, path, table.line_num if table is not None else None) from error
    finally:
        csv.field_size_limit(limit)
