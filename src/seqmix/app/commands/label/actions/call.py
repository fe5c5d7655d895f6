"""An action as it was typed, and the checks that actions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqmix.serve.project import Project


@dataclass(frozen=True)
class Call:
    """The project, the words after the name of the action, and the options of links and files."""

    folder: Path
    words: tuple[str, ...] = ()
    admin: bool = False
    url: str | None = None
    read: str = ""

    def open(self) -> Project:
        """Open the project."""
        from seqmix.serve.project import open_project

        return open_project(self.folder)


@dataclass(frozen=True)
class Action:
    """A row of the table: the words it takes, what it does, and the function that does it.

    `NAME [WORD]` takes one word or two, `NAME…` one or more.
    """

    usage: str
    summary: str
    run: Callable[[Call], None]
    makes_links: bool = False  # and so takes --admin and --url
    reads_files: bool = False  # and so takes --read

    @property
    def least(self) -> int:
        """The fewest words it takes."""
        return sum(not word.startswith("[") for word in self.usage.split())

    @property
    def most(self) -> float:
        """The most words it takes."""
        return float("inf") if "…" in self.usage else len(self.usage.split())
