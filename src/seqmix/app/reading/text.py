"""Raw text for a project: lines, paragraphs, a column of a table, or any format that is read."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seqmix.app.console import say
from seqmix.app.options import ReadOptions
from seqmix.app.reading.data import read_data
from seqmix.app.reading.raw_text import raw_sentences
from seqmix.data import formats
from seqmix.data.files import lines
from seqmix.data.samples import is_sample
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError

_LISTED = 10  # files left out that are named


def read_text(name: str, reading: ReadOptions) -> Iterable[Sentence]:
    """Return the sentences of a file, a folder, a column of a table or a sample."""
    path, format = Path(name), reading.format
    if is_sample(name) and not path.exists():
        return read_data(name, reading)
    if not path.exists():
        raise DataError("there is no such file or folder", path)
    if reading.column is not None or format == "csv":
        return _table(path, reading)
    if path.suffix.lower() == ".csv" and format is None:
        return _table(path, reading)
    formats.refuse_unsafe(path)
    if path.is_dir() and format is None and _is_unlabeled(path):
        _say_left_out(path)
        return formats.cleaned(_folder(path, reading), reading.options)
    if path.is_file() and (format == "text" or (format is None and _is_raw(path))):
        raw = raw_sentences(lines(path), path.stem, reading)
        return formats.cleaned(raw, reading.options)
    return formats.read(path, format, reading.options)


def _is_raw(path: Path) -> bool:
    """Whether a file is raw text; one with annotations beside it is not."""
    return not path.with_suffix(".ann").exists() and formats.guess(path).name == "text"


def _folder(folder: Path, reading: ReadOptions) -> Iterator[Sentence]:
    """Yield the sentences of each document, documents by name."""
    for file in sorted(folder.rglob("*.txt")):
        name = file.relative_to(folder).with_suffix("").as_posix()
        yield from raw_sentences(lines(file), name, reading)


def _is_unlabeled(folder: Path) -> bool:
    """Whether a folder holds text, and is not in one of the formats of folders."""
    if any(format.folder and format.folder(folder) for format in formats.FORMATS.values()):
        return False
    return next(folder.rglob("*.txt"), None) is not None


def _say_left_out(folder: Path) -> None:
    """Name the files of a folder that are not text."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    names = sorted(file.name for file in files if file.suffix not in (".txt", ".ann"))
    if names:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        listed = ", ".join(names[:_LISTED])
        say(f"{folder}: left out, since only .txt is read: {listed}{more}")


def _table(path: Path, reading: ReadOptions) -> Iterator[Sentence]:
    """Yield the texts of a column of a .csv or .tsv file, named as in its first line."""
    if (column := reading.column) is None:
        raise ConfigError(
            f"which column of {path} holds the text? Name it with --read, such as "
            "--read csv:column=text"
        )
    with _rows(path) as table:
        names = table.fieldnames or []
        if column not in names:
            columns = ", ".join(repr(name) for name in names) or "none"
            raise DataError(f"there is no column {column!r}; there are {columns}", path, 1)
        for row in table:
            text = row.get(column) or ""
            # a row is a line, however many lines are in it
            parts = [text] if reading.unit == "line" else text.splitlines()
            yield from raw_sentences(enumerate(parts), path.stem, reading, table.line_num)


@contextmanager
def _rows(path: Path) -> Iterator[csv.DictReader[str]]:
    limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a cell may be a whole document
    table: csv.DictReader[str] | None = None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            yield table
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        what = f"cannot read this table: {error}"
        if isinstance(error, UnicodeDecodeError):
            what = "expected UTF-8 text"
        raise DataError(what, path, table.line_num if table is not None else None) from error
    finally:
        csv.field_size_limit(limit)
