"""The newest model of a project by a name that stays: the project's folder, its `models`, or the file `models/latest`.

The file names a folder beside it, in plain text: a link would lead wherever a stranger's project wants it to. Who uses a model holds a
shared lock on its folder, and whoever clears old models away leaves locked ones alone.
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
_KNOWN_BY = "tagger.json"
_TRIES = 5  # a model may be cleared away between being named and being locked


def name_newest(models: Path, name: str) -> None:
    """Let `latest` name this folder from now on, in one step."""
    write_text(models / LATEST, name + "\n")


def newest_model(path: Path) -> Path:
    """The folder of the model that a path means; a path that is no project's is given back as it is."""
    if (path / _KNOWN_BY).exists():
        return path
    if path.name == LATEST and path.is_file():
        models = path.parent
    elif (path / "project.toml").is_file():
        models = path / "models"
    elif (path / LATEST).is_file():
        models = path
    else:
        return path
    named = _named(models / LATEST)
    numbers = (
        sorted((int(f.name) for f in models.iterdir() if f.name.isdecimal()), reverse=True)
        if models.is_dir()
        else []
    )
    for name in ([named] if named else []) + [f"{number:03d}" for number in numbers]:
        folder = models / name
        if not folder.is_symlink() and (folder / _KNOWN_BY).is_file():
            return folder
    raise ModelError(f"{path} has no model yet; seqmix annotate trains one after the first answers")


@contextmanager
def using_model(path: Path) -> Iterator[Path]:
    """The folder of the model that a path means, safe from being cleared away until the block ends."""
    for last in (*[False] * (_TRIES - 1), True):
        folder = newest_model(path)
        handle = _locked(folder, fcntl.LOCK_SH)
        try:
            if last or folder == path or (folder / _KNOWN_BY).exists():
                yield folder
                return
        finally:
            if handle is not None:
                os.close(handle)


def clear_model(folder: Path) -> bool:
    """Remove a model unless a process uses it; whether it is gone."""
    handle = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if handle is None:
        return False
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
    return True


def _locked(folder: Path, how: int) -> int | None:
    """A handle that holds a lock on a folder; None where it is no folder, cannot be locked, or is locked by another."""
    handle = None
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(handle, how)
        return handle
    if handle is not None:
        os.close(handle)
    return None


def _named(file: Path) -> str | None:
    """The number that the file holds; anything else counts for nothing."""
    with suppress(OSError, UnicodeDecodeError):
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as content:
            name = content.read(100).decode("ascii").strip()
        return name if name.isdecimal() else None
    return None
