"""What may be written over: what seqmix wrote there before, of the same kind, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

from seqmix.errors import DataError


@dataclass(frozen=True)
class FolderKind:
    """How to tell a folder of one kind that seqmix writes from any other."""

    name: str  # with its article: "a tagger"
    markers: tuple[str, ...]  # patterns of the files that each such folder has
    files: tuple[str, ...] = ()  # patterns of the others it may have, such as vocab/*.json

    def refuse_other(self, folder: Path) -> None:
        """Refuse a file, or a folder that holds anything else; an empty one may be replaced."""
        if folder.is_file():
            raise DataError(
                "a file has the name of the folder to write; move it or choose another name", folder
            )
        present: set[str] = set()
        name = ""
        for name in _names(folder) if folder.is_dir() else ():
            fitting = [p for p in (*self.markers, *self.files) if _fits(name, p)]
            if not fitting:
                self._refuse(folder, name)
            present.update(fitting)
        if name and not present.issuperset(self.markers):
            self._refuse(folder, name)

    def _refuse(self, folder: Path, name: str) -> NoReturn:
        raise DataError(
            f"the folder to write holds other files than {self.name}'s; name a new or empty one",
            folder,
            None,
            name,
        )


NEW = FolderKind("a new folder", ())  # for what never replaces anything


def refuse_source(out: Path, *sources: Path | str | None) -> None:
    """Refuse to write over what is read, into it, or over a folder that holds it."""
    place = out.resolve()
    for source in sources:
        read = Path(source or "").resolve()
        if not source or not read.exists():
            continue  # the name of a sample or of a model
        if place == read or place in read.parents or (read.is_dir() and read in place.parents):
            raise DataError(f"cannot write here, since {source} is read; name another place", out)


def other_file(path: Path, name: str) -> DataError:
    """Return the error for a file that is in the way and not of the kind to be written."""
    return DataError(f"a file is here that is not {name}, and is kept; name another", path)


def _fits(name: str, pattern: str) -> bool:
    """Whether a path fits a pattern, whose * stops at a slash."""
    return fnmatchcase(name, pattern) and name.count("/") == pattern.count("/")


def _names(folder: Path) -> Iterator[str]:
    """Yield the paths of all files and links in a folder, as they come."""

    def fail(error: OSError) -> NoReturn:
        raise DataError(f"cannot read: {error.strerror}", folder) from error

    for place, folders, files in os.walk(folder, onerror=fail):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*files, *links):
            yield (Path(place) / name).relative_to(folder).as_posix()
