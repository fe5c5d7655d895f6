"""Files written whole or not at all, and text read line by line with its line numbers.

Everything the project writes goes through `replacing`: beside its place, flushed to the disk, then renamed onto it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seqmix.errors import DataError


@contextmanager
def replacing(path: Path, folder: bool = False) -> Iterator[Path]:
    """A path to write to; it becomes `path` when the block ends well and vanishes when it does not."""
    if not path.name:
        raise DataError("cannot write here: expected the name of a file or folder", path)
    made: list[Path] = []
    try:
        made = [parent for parent in (path.parent, *path.parent.parents) if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        _remove(beside)
        if folder:
            if path.is_file():
                raise DataError("a file has the name of the folder to write; move it or choose another name", path)
            beside.mkdir()
    except OSError as error:
        _remove_empty(made)
        raise DataError(f"cannot write here: {error.strerror}", path) from error
    try:
        yield beside
        for file in (*beside.rglob("*"), beside) if folder else (beside,):
            sync(file)
        if folder and path.exists():  # a folder cannot be renamed onto another: the old one steps aside first
            old = path.with_name(f".{path.name}.{os.getpid()}.old")
            path.rename(old)
            try:
                beside.rename(path)
            except OSError:
                old.rename(path)
                raise
            _remove(old)
        else:
            beside.replace(path)
        sync(path.parent)
    except OSError as error:
        raise DataError(f"cannot write here: {error.strerror}", path) from error
    finally:
        _remove(beside)
        if not path.exists():
            _remove_empty(made)


def sync(path: Path) -> None:
    """Ask the disk to keep what was written to a file or folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """A small text file, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers, without line ends; a BOM is passed over, a broken byte is an error.

    subtle: only \\n and \\r\\n end a line. `str.splitlines` would also cut at U+2028 and others that stand inside real tokens.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                    raw = raw[3:]
                try:
                    yield number, raw.rstrip(b"\n").rstrip(b"\r").decode("utf-8")
                except UnicodeDecodeError as error:
                    shown = raw.decode("utf-8", "backslashreplace")
                    raise DataError(f"expected UTF-8 text, byte {error.start + 1} of the line is not", path, number, shown) from error
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_empty(folders: Iterable[Path]) -> None:
    """Folders made for nothing, the innermost first."""
    for folder in folders:
        with suppress(OSError):  # something else stands in it by now
            folder.rmdir()
