"""A disk that forgets: what a power cut may leave of a folder, worked out from what was synced.

Loaded into the process that is to die. It wraps the calls with which Python changes a folder,
counts them, and at the k-th, before it is done, ends the process with SIGKILL; with `cut`, the
folder is first made into something the disk might hold after a power cut:

    a file       is whole if it was synced after it was last written;
                 else it is whole, empty, cut in half or full of zeros
    a directory  has the entries it has now,
                 or those it had when it was last synced (none, if it never was)

Each directory chooses for itself, but for a rename from one to another, which no file system does
by halves. This forgets more than any real file system would, and nothing that fsync promises.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from seqmix.data import files

_CHANGES = ("fsync", "rename", "replace", "mkdir", "unlink", "rmdir")
Entry = tuple[int, bool]  # inode, is it a directory


class Disk:
    """Knows of every file and directory under a root whether the disk would still have it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # of a file: its size and time when it was synced
        self._synced: dict[int, tuple[int, int]] = {}
        # of a directory: what it had when it was synced
        self._entries: dict[int, dict[str, Entry]] = {}
        # subtle: a removed file that is open keeps its content, and no other gets its inode
        self._open: dict[int, int] = {}
        # directories between which something was moved since they were synced
        self._moved: list[set[int]] = []
        for folder, _, names in os.walk(root):
            self.sync_folder(folder)
            for name in names:
                with (Path(folder) / name).open("rb") as file:
                    self.synced(file.fileno())

    def synced(self, handle: int) -> None:
        """What fsync was called for."""
        about = os.fstat(handle)
        if stat.S_ISDIR(about.st_mode):
            self.sync_folder(handle)
        else:
            self._keep(handle)
            self._synced[about.st_ino] = (about.st_size, about.st_mtime_ns)

    def sync_folder(self, folder: int | str) -> None:
        """A directory is synced, and with it those that something was moved to or from."""
        with _opened(folder) as handle:
            own = self._keep(handle)
        for group in [group for group in self._moved if own in group]:
            self._moved.remove(group)
            for other in group - {own}:
                self._entries[other] = self._now(self._open[other])
        self._entries[own] = self._now(self._open[own])

    def moved(self, one: Path, other: Path) -> None:
        """A rename from a place to another."""
        groups = {self._keep_path(one.parent), self._keep_path(other.parent)}
        if len(groups) == 1:
            return
        for group in [group for group in self._moved if group & groups]:
            self._moved.remove(group)
            groups |= group
        self._moved.append(groups)

    def cut(self, rng: random.Random) -> None:
        """Make the folder into what a power cut might have left of it."""
        after = self.root.with_name(self.root.name + ".after")
        after.mkdir()
        chosen: dict[frozenset[int], bool] = {}
        with _opened(str(self.root)) as handle:
            self._leave(self._keep(handle), after, rng, chosen)
        shutil.rmtree(self.root)
        after.rename(self.root)

    def _leave(
        self, folder: int, place: Path, rng: random.Random, chosen: dict[frozenset[int], bool]
    ) -> None:
        group = next(
            (frozenset(group) for group in self._moved if folder in group), frozenset({folder})
        )
        as_now = chosen.setdefault(group, rng.random() < 0.5)
        entries = self._now(self._open[folder]) if as_now else self._entries.get(folder, {})
        for name, (inode, is_folder) in sorted(entries.items()):
            if is_folder:
                (place / name).mkdir()
                self._leave(inode, place / name, rng, chosen)
            else:
                (place / name).write_bytes(self._content(inode, rng))

    def _content(self, inode: int, rng: random.Random) -> bytes:
        handle = self._open[inode]
        about = os.fstat(handle)
        content = os.pread(handle, about.st_size, 0)
        if self._synced.get(inode) == (about.st_size, about.st_mtime_ns):
            return content
        return rng.choice([content, b"", content[: len(content) // 2], bytes(len(content))])

    def _now(self, handle: int) -> dict[str, Entry]:
        """The entries of a directory, each kept open from now on."""
        found: dict[str, Entry] = {}
        with os.scandir(handle) as entries:
            for entry in entries:
                child = os.open(entry.name, os.O_RDONLY, dir_fd=handle)
                found[entry.name] = (self._keep(child), entry.is_dir())
                os.close(child)
        return found

    def _keep_path(self, folder: Path) -> int:
        with _opened(str(folder)) as handle:
            return self._keep(handle)

    def _keep(self, handle: int) -> int:
        inode = os.fstat(handle).st_ino
        if inode not in self._open:
            self._open[inode] = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY)
        return inode


class _opened:  # noqa: N801  used like a function
    """A directory's handle, given as it is or opened for as long as needed."""

    def __init__(self, folder: int | str) -> None:
        self._given = folder

    def __enter__(self) -> int:
        self._handle = (
            os.open(self._given, os.O_RDONLY) if isinstance(self._given, str) else self._given
        )
        return self._handle

    def __exit__(self, *_: object) -> None:
        if isinstance(self._given, str):
            os.close(self._handle)


class _Counter:
    """Counts changes to a folder, tells the disk, and ends the process before the chosen one."""

    def __init__(self, number: int | None, disk: Disk | None, seed: int, plant: str | None) -> None:
        self.number, self.disk, self.seed, self.plant = number, disk, seed, plant
        self.count = 0
        self._real = {(os, name): getattr(os, name) for name in _CHANGES} | {
            (files, "swap"): files.swap
        }

    def wrap(self) -> None:
        for (module, name), function in self._real.items():
            setattr(module, name, partial(self._change, name, function))

    def _change(self, name: str, real: Callable[..., Any], *given: Any, **more: Any) -> Any:
        self.count += 1
        if self.count == self.number:
            self._die()
        if name == "fsync" and (
            self.plant == "no fsync" or (self.plant == "no folder fsync" and _is_folder(given[0]))
        ):
            return None
        result = real(*given, **more)
        if self.disk is not None and name == "fsync":
            self.disk.synced(given[0])
        elif self.disk is not None and name in ("rename", "replace", "swap"):
            self.disk.moved(Path(given[0]), Path(given[1]))
        return result

    def _die(self) -> None:
        for (module, name), function in self._real.items():
            setattr(module, name, function)
        if self.disk is not None:
            self.disk.cut(random.Random(self.seed))
        os.kill(os.getpid(), signal.SIGKILL)


def _is_folder(handle: int) -> bool:
    return stat.S_ISDIR(os.fstat(handle).st_mode)


def die_at(
    number: int | None, root: Path, cut: bool = False, seed: int = 0, plant: str | None = None
) -> Callable[[], int]:
    """Die before the `number`-th change to the folder; a function that says how many there were.

    None for a number: never. `plant` puts a bug into the project that only a power cut can show:
    "no fsync", or "no folder fsync" (files, but not their names).
    """
    counter = _Counter(number, Disk(root) if cut else None, seed, plant)
    counter.wrap()
    return lambda: counter.count
