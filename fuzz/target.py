"""What a target is, and what counts as a finding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from seqmix.errors import SeqMixError

BETWEEN = b"\n%%%%\n"  # between the files of a target that reads several


@dataclass(frozen=True)
class Target:
    """One reader under attack: `run` raises only errors of the package, whatever the bytes."""

    name: str
    run: Callable[[bytes, Path], None]  # the bytes, and a folder to put them in
    seeds: Callable[[], Iterable[bytes]]  # good input to begin with
    share: float = 1.0  # of the executions: slow readers get fewer


class Finding(AssertionError):  # noqa: N818  what it is called where fuzzing is talked about
    """The reader took the input, or refused it, in a way it must not."""


def attack(target: Target, data: bytes, folder: Path) -> None:
    """Give the bytes to the reader; an error of the package is fine if it fits on one line."""
    try:
        target.run(data, folder)
    except SeqMixError as error:
        said = str(error)
        try:
            said.encode()
        except UnicodeEncodeError as half:
            raise Finding(f"a message with half a character: {said!a}") from half
        if "\n" in said or "\r" in said:
            raise Finding(f"a message of several lines: {said!a}") from error
        if len(said) > 5000:
            raise Finding(f"a message of {len(said)} characters: {said[:200]!a}") from error


def put(data: bytes, folder: Path, names: Iterable[str]) -> None:
    """The bytes as files, one a name; names without a part have no file."""
    parts = data.split(BETWEEN)
    for name, part in zip(names, [*parts, *[None] * 20], strict=False):
        path = folder / name
        if part is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(part)


def named(data: bytes, good: Mapping[str, bytes], names: Collection[str]) -> dict[str, bytes]:
    """The good files, those replaced that the input gives, each under a line with its name.

    So the input can be small though a folder has many files.
    """
    given = (
        (name.decode("latin-1"), content)
        for name, _, content in (part.partition(b"\n") for part in data.split(BETWEEN))
    )
    return {**good, **{name: content for name, content in given if name in names}}
