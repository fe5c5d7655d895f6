"""Files at names everybody knows, in a folder that may have come from a stranger: a link there could lead to any file of this machine."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Literal

from seqmix.errors import DataError

_EXPECTED = "expected a plain file or folder; a link or device could lead anywhere, put the file itself there if it belongs here"
_FLAGS = {"rb": os.O_RDONLY, "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT}


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder in which one of these names, or anything below one, is a link, a pipe or a device."""
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
                raise DataError(_EXPECTED, path)


def open_plain(path: Path, mode: Literal["rb", "ab"], permissions: int = 0o666) -> BinaryIO:
    """A file opened to be read or added to, never emptied, and never through a link; a pipe does not keep us waiting."""
    try:
        handle = os.open(
            path, _FLAGS[mode] | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, permissions
        )
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise DataError(_EXPECTED, path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataError(_EXPECTED, path)
    return os.fdopen(handle, mode)
