"""A folder for one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seqmix.data.files import make_folder, open_plain
from seqmix.errors import RunError


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
