"""Every exception the package raises on purpose.

    SeqMixError            one line a person can act on; the command line shows it and exits with 2
    ├── DataError          a file or a sentence is not what it should be
    │   └── TagError       a tag, row or span that the tag set or scheme does not allow
    ├── PoolExhaustedError a query asks for more sentences than are left
    ├── RunError           a run directory cannot be used: locked, foreign, of another version
    ├── StoreError         a project or store cannot be used: foreign, unreachable, too new
    │   ├── NotFoundError  there is no such sentence, annotator or generated sentence
    │   └── StaleError     an answer to what has changed since, or is another annotator's
    ├── ModelError         a model cannot be found, loaded or saved
    ├── ConfigError        settings that contradict each other or the data
    └── MissingExtraError  an optional dependency is not installed

An exception keeps its fields in `args`, so that a worker process can pickle it home.
"""

from __future__ import annotations

from pathlib import Path


class SeqMixError(Exception):
    """The root of the tree; `str(error)` is one line that says what to do."""


class DataError(SeqMixError):
    """A file or sentence is broken: what was expected, where, and what is there."""

    def __init__(
        self,
        expected: str,
        path: Path | str | None = None,
        line: int | None = None,
        text: str | None = None,
    ) -> None:
        super().__init__(expected, path, line, text)
        self.expected, self.path, self.line, self.text = expected, path, line, text

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        place = "" if self.path is None else f"{self.path}{line}: "
        return place + self.expected + ("" if self.text is None else f"; found {_quote(self.text)}")


class TagError(DataError):
    """A tag, tag row or span that the tag set or the scheme does not allow."""


class PoolExhaustedError(SeqMixError):
    """A query asked for more sentences than are left unlabeled."""

    def __init__(self, requested: int, available: int) -> None:
        super().__init__(requested, available)
        self.requested, self.available = requested, available

    def __str__(self) -> str:
        return (
            f"asked for {self.requested} sentences but only {self.available} are unlabeled; "
            "lower query.size or loop.rounds"
        )


class RunError(SeqMixError):
    """A run directory that cannot be used."""


class StoreError(SeqMixError):
    """A project or its store cannot be used."""


class NotFoundError(StoreError):
    """Nothing in the store has this id."""

    def __init__(self, what: str, id: object) -> None:
        super().__init__(what, id)
        self.what, self.id = what, id

    def __str__(self) -> str:
        return f"there is no {self.what} {_quote(str(self.id))} in this project"


class StaleError(StoreError):
    """An answer that does not fit the state of its sentence; `version` is the one that would."""

    def __init__(self, why: str, version: int) -> None:
        super().__init__(why, version)
        self.why, self.version = why, version

    def __str__(self) -> str:
        return self.why


class ModelError(SeqMixError):
    """A model cannot be found, loaded or saved."""


class ConfigError(SeqMixError):
    """Settings that contradict each other, or that the data cannot satisfy."""


class MissingExtraError(SeqMixError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(extra, needed_for)
        self.extra, self.needed_for = extra, needed_for

    def __str__(self) -> str:
        return f"{self.needed_for} needs an optional package: pip install 'seqmix[{self.extra}]'"


def first_line(error: BaseException, limit: int | None = None) -> str:
    """Return the first line of an exception's message, or its class's name if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:limit]


def _quote(text: str, limit: int = 80) -> str:
    """Return the text in quotes, escaped and cut, so that a message stays one line."""
    return repr(text if len(text) <= limit else text[:limit] + "…")
