"""Files that are written whole or not at all, never followed through a link, and versioned.

Everything is written through `replacing`: beside its place, synced to disk, then renamed onto it.
A new folder is made with `make_folder`, which syncs its name too: a power cut loses neither.
`locked` keeps a folder for one process at a time.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

from seqmix.data.overwriting import FolderKind
from seqmix.errors import DataError, RunError

LEFTOVER = re.compile(r"\..+\.\d+\.(part|old)")  # names of what is written beside its place
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_NOT_PLAIN = (
    "expected a plain file or folder; a link or device could lead anywhere, "
    "put the file itself there if it belongs here"
)
_FLAGS = {"rb": os.O_RDONLY, "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT}


@contextmanager
def replacing(path: Path, folder: FolderKind | None = None) -> Iterator[Path]:
    """Yield a path to write to; it becomes `path` if the block succeeds, else it is removed.

    A folder replaces an empty one or one of its kind; anything else that is there is an error.
    """
    if not path.name:
        raise DataError("cannot write here: expected the name of a file or folder", path)
    new_folders: list[Path] = []
    lock: int | None = None
    try:
        new_folders = make_folder(path.parent)
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        _remove(beside)
        if folder is not None:
            folder.refuse_other(path)
            _remove_abandoned(path)
            lock = _make_locked(beside)
    except OSError as error:
        _remove_empty(new_folders)
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
        if lock is not None:
            os.close(lock)
        if not path.exists():
            _remove_empty(new_folders)


def make_folder(path: Path) -> list[Path]:
    """Make a folder and its parents, sync their names, and return the new ones, innermost first."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        for folder in new:
            sync(folder.parent)
    except OSError:
        _remove_empty(new)
        raise
    return new


def clear_leftovers(folder: Path) -> None:
    """Remove what killed writers left in a folder; the caller must be its only user."""
    for path in list(folder.rglob(".*")):
        if LEFTOVER.fullmatch(path.name):
            _remove(path)


def sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a small text file, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line of a UTF-8 file, without a BOM and without line ends.

    Only \\n and \\r\\n end a line: `str.splitlines` would also cut at U+2028, inside real tokens.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                    raw = raw[3:]
                try:
                    yield number, raw.rstrip(b"\n").rstrip(b"\r").decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"expected UTF-8 text, byte {error.start + 1} of the line is not",
                        path,
                        number,
                        raw.decode("utf-8", "backslashreplace"),
                    ) from error
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Keep other processes out of a folder; a second one is refused at once, or waits."""
    try:
        make_folder(folder)
        handle = open_plain(folder / "lock", "ab")
    except OSError as error:
        raise RunError(f"cannot write to the folder {folder}: {error.strerror}") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            raise RunError(
                f"another process is working in {folder}; wait for it, or give another folder"
            ) from None
        yield


def version_problem(place: Path, version: object, supported: int) -> str | None:
    """Return why files of this format version cannot be opened and what to do, or None."""
    if type(version) is not int or version < 1:
        return (
            f"{place} does not say which format it has (its format_version is {version!r}); "
            "it is damaged, or was not made by seqmix"
        )
    if version > supported:
        return (
            f"{place} has format {version}, written by a newer seqmix; "
            f"this one reads formats up to {supported}: upgrade seqmix"
        )
    if version < supported:
        return (
            f"{place} has format {version}, written by an older seqmix; "
            f"this one reads format {supported}"
        )
    return None


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder in which one of these names, or anything below, is a link, pipe or device.

    A link in a folder that came from elsewhere could lead to any file of this machine.
    """
    for name in names:
        top = folder / name
        below = (
            Path(place) / child
            for place, folders, files in os.walk(top)
            for child in (*folders, *files)
        )
        for path in (top, *(below if not top.is_symlink() else ())):
            try:
                mode = path.lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                continue
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise DataError(_NOT_PLAIN, path)


def open_plain(path: Path, mode: Literal["rb", "ab"], permissions: int = 0o666) -> BinaryIO:
    """Open a file to read or append, never through a link and without waiting for a pipe."""
    flags = _FLAGS[mode] | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, permissions)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise DataError(_NOT_PLAIN, path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataError(_NOT_PLAIN, path)
    return os.fdopen(handle, mode)


def swap(first: Path, second: Path) -> None:
    """Exchange two paths in one step, so that neither is ever missing; only Linux can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    paths = (_HERE, os.fsencode(first), _HERE, os.fsencode(second))
    if rename(*paths, ctypes.c_uint(_EXCHANGE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(first))


def _exchange(new: Path, path: Path) -> None:
    """Replace a folder, which a rename cannot; where swapping fails, the old one is moved first."""
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


def _make_locked(folder: Path) -> int:
    """Make a folder and return a handle that locks it, as a sign that its writer is alive."""
    while True:
        folder.mkdir(exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if folder.exists():
            return handle
        os.close(handle)  # another writer removed it as abandoned just before it was locked


def _remove_abandoned(path: Path) -> None:
    """Remove the folders that killed writers of this path left."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.\d+\.part")
    for left in list(path.parent.iterdir()):
        if pattern.fullmatch(left.name) and left.is_dir():
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
    """Remove new folders that stayed empty, innermost first."""
    for folder in folders:
        with suppress(OSError):  # not empty by now
            folder.rmdir()
