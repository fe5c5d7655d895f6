"""Create a project folder completely or not at all, so that a killed `init` can be repeated.

A new folder is built beside its place and renamed. Into an existing folder the files move one by
one, project.toml last; a list of them, written before the first moves, tells the next `init` which
ones a killed `init` had moved.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from seqmix.data.files import open_plain, refuse_links, replacing, sync, write_text
from seqmix.data.overwriting import NEW
from seqmix.errors import DataError, StoreError

PART, _MOVING = ".init.part", "moving"


@contextmanager
def building(folder: Path, last: str) -> Iterator[Path]:
    """Yield a folder to build in; if the block succeeds its files move to `folder`, `last` last."""
    if not folder.exists():
        with replacing(folder, NEW) as beside:
            beside.chmod(0o700)
            yield beside
        return
    part = folder / PART
    moved: list[Path] = []
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(0o700)
        yield part
        names = sorted(
            (file.name for file in part.iterdir()), key=lambda name: (name == last, name)
        )
        for name in names:
            sync(part / name)
        write_text(part / _MOVING, "".join(f"{name}\n" for name in names))
        for name in names:
            (part / name).replace(folder / name)
            moved.append(folder / name)
        sync(folder)
        sync(part)
    except BaseException as error:
        for path in moved:
            path.unlink(missing_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError):
            raise DataError(f"cannot write here: {error.strerror}", folder) from error
        raise
    clear_moved(folder)


def clear_moved(folder: Path, *half: str) -> None:
    """Remove what an `init` left behind, and of the files named `half` those it had moved."""
    part = folder / PART
    refuse_links(folder, (PART,))
    if not part.exists():
        return
    try:
        with open_plain(part / _MOVING, "rb") as file:
            names = file.read(10_000).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        names = []
    for name in half:
        if name in names and not (part / name).exists():
            (folder / name).unlink(missing_ok=True)
    shutil.rmtree(part, ignore_errors=True)


def settle(path: Path) -> None:
    """Write the journal of a SQLite file into the file, so that it can be moved alone."""
    try:
        with closing(sqlite3.connect(path)) as db:
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"the store {path} cannot be written: {error}") from error
    if busy or path.with_name(f"{path.name}-wal").exists():
        raise StoreError(
            f"the store {path} cannot be written: its journal is in use, or the disk is full"
        )
