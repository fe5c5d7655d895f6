"""The newest model of a project, by the project's folder, its `models`, or `models/latest`.

The file `latest` names a folder beside it in plain text, since a link could lead anywhere.
A process that uses a model holds a shared lock on its folder, so that it is not removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seqmix.data.files import write_text
from seqmix.errors import ModelError

LATEST = "latest"
_DESCRIPTION = "tagger.json"
_TRIES = 5  # a model may be removed between being named and being locked


def name_newest(models: Path, name: str) -> None:
    """Make `latest` name this folder, in one step."""
    write_text(models / LATEST, name + "\n")


def newest_model(path: Path) -> Path:
    """Return the folder of a project's newest model; any other path is returned unchanged."""
    if (path / _DESCRIPTION).exists():
        return path
    if path.name == LATEST and path.is_file():
        models = path.parent
    elif (path / "project.toml").is_file():
        models = path / "models"
    elif (path / LATEST).is_file():
        models = path
    else:
        return path
    latest = _read_latest(models / LATEST)
    entries = models.iterdir() if models.is_dir() else ()
    numbers = sorted((int(f.name) for f in entries if f.name.isdecimal()), reverse=True)
    for name in ([latest] if latest else []) + [f"{number:03d}" for number in numbers]:
        folder = models / name
        if not folder.is_symlink() and (folder / _DESCRIPTION).is_file():
            return folder
    raise ModelError(f"{path} has no model yet; seqmix annotate trains one after the first answers")


@contextmanager
def using_model(path: Path) -> Iterator[Path]:
    """Yield the folder that `newest_model` returns, locked so that it is not removed."""
    for last in (*[False] * (_TRIES - 1), True):
        folder = newest_model(path)
        handle = _lock(folder, fcntl.LOCK_SH)
        try:
            if last or folder == path or (folder / _DESCRIPTION).exists():
                yield folder
                return
        finally:
            if handle is not None:
                os.close(handle)


def clear_model(folder: Path) -> bool:
    """Remove a model unless a process uses it, and return whether it is gone."""
    handle = _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if handle is None:
        return False
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
    return True


def _lock(folder: Path, how: int) -> int | None:
    """Return a handle that locks a folder, or None if it cannot be locked or is not a folder."""
    handle = None
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(handle, how)
        return handle
    if handle is not None:
        os.close(handle)
    return None


def _read_latest(file: Path) -> str | None:
    """Return the number in the file, or None if it holds anything else."""
    with suppress(OSError, UnicodeDecodeError):
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as content:
            name = content.read(100).decode("ascii").strip()
        return name if name.isdecimal() else None
    return None
