"""Files written whole or not at all, and text read line by line with its line numbers.

Everything the project writes goes through `replacing`: beside its place, flushed to the disk, then renamed onto it. So that a power
cut takes nothing away that stood there, a new folder is made with `make_folder`, which flushes its name too.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seqmix.errors import DataError

LEFTOVER = re.compile(
    r"\..+\.\d+\.(part|old)"
)  # names under which things are written beside their place
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


@contextmanager
def replacing(path: Path, folder: bool = False) -> Iterator[Path]:
    """A path to write to; it becomes `path` when the block ends well and vanishes when it does not."""
    if not path.name:
        raise DataError("cannot write here: expected the name of a file or folder", path)
    made: list[Path] = []
    handle: int | None = None
    try:
        made = make_folder(path.parent)
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        _remove(beside)
        if folder:
            if path.is_file():
                raise DataError(
                    "a file has the name of the folder to write; move it or choose another name",
                    path,
                )
            _clear_dead(path)
            handle = _claimed(beside)
    except OSError as error:
        _remove_empty(made)
        raise DataError(f"cannot write here: {error.strerror}", path) from error
    try:
        yield beside
        for file in (*beside.rglob("*"), beside) if folder else (beside,):
            sync(file)
        if folder and path.exists():
            _exchange(beside, path)
        else:
            beside.replace(path)
        sync(path.parent)
    except OSError as error:
        raise DataError(f"cannot write here: {error.strerror}", path) from error
    finally:
        _remove(beside)
        if handle is not None:
            os.close(handle)
        if not path.exists():
            _remove_empty(made)


def make_folder(path: Path) -> list[Path]:
    """Make a folder and those above it, so that the disk keeps them; the ones that are new, the innermost first."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        for folder in made:
            sync(folder.parent)
    except OSError:
        _remove_empty(made)
        raise
    return made


def clear_leftovers(folder: Path) -> None:
    """Remove what killed writers left half written anywhere in a folder; only for who is certain that nobody else writes there."""
    for path in list(folder.rglob(".*")):
        if LEFTOVER.fullmatch(path.name):
            _remove(path)


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
                    raise DataError(
                        f"expected UTF-8 text, byte {error.start + 1} of the line is not",
                        path,
                        number,
                        shown,
                    ) from error
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error


def swap(one: Path, other: Path) -> None:
    """Let two paths change places in one step, so that at no moment one of them is missing; Linux can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), ctypes.c_uint(_EXCHANGE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one))


def _exchange(new: Path, path: Path) -> None:
    """A folder cannot be renamed onto another. Where the two cannot change places either, the old one steps aside first."""
    try:
        swap(new, path)
        return
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV):
            raise
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    path.rename(old)
    try:
        new.rename(path)
    except OSError:
        old.rename(path)
        raise
    _remove(old)


def _claimed(folder: Path) -> int:
    """Make a folder and lock it for as long as the handle is open, so that others see that its writer lives."""
    while True:
        folder.mkdir(exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if folder.exists():
            return handle
        os.close(handle)  # somebody took it for a dead writer's in the moment before it was locked


def _clear_dead(path: Path) -> None:
    """Remove folders that writers of this one left when they were killed."""
    own = re.compile(rf"\.{re.escape(path.name)}\.\d+\.part")
    for left in list(path.parent.iterdir()):
        if own.fullmatch(left.name) and left.is_dir():
            handle = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(left)
            except BlockingIOError:
                pass  # its writer lives
            finally:
                os.close(handle)


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
