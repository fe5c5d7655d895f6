"""Model folders: written whole or not at all, and known again by the checksums of their files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from seqmix.data.files import replacing
from seqmix.data.format_versions import foreign
from seqmix.errors import ModelError, SeqMixError

FORMAT_VERSION = 1  # of a tagger
_CHUNK = 1 << 20


@contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """`replacing` for the libraries that write models: what they complain of when the disk is full is no OSError."""
    with replacing(folder, folder=True) as beside:
        mode = beside.stat().st_mode & 0o666
        try:
            yield beside
            for file in beside.rglob("*"):
                if file.is_file():
                    file.chmod(
                        mode
                    )  # some libraries write for the owner alone, whatever the umask says
        except (OSError, SeqMixError):
            raise
        except Exception as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelError(f"cannot write the model folder {folder}: {why}") from error


def checksums(folder: Path) -> dict[str, int]:
    """CRC-32 of every file; a flipped bit in a weight would otherwise be a slightly worse model."""
    return {file.name: _checksum(file) for file in sorted(folder.iterdir())}


def check(folder: Path, expected: Mapping[str, int]) -> None:
    """Refuse files that are not what was written; folders of earlier versions have no checksums.

    subtle: a stranger chose the names, so none may lead out of the folder, nor to anything but a file.
    """
    if not isinstance(expected, Mapping):
        raise ValueError("its checksums are no object of file names and numbers")
    for name, number in expected.items():
        if name != Path(name).name or not (folder / name).is_file():
            raise ValueError(f"its checksums name {name[:80]!r}, and there is no such file in it")
        if _checksum(folder / name) != number:
            raise ValueError(
                f"{name} is not what was written, its checksum differs; restore it from a copy, or train again"
            )


def describe(folder: Path) -> dict[str, Any]:
    """What a saved tagger says about itself."""
    try:
        for file in folder.iterdir():
            if not (file.is_file() or file.is_dir()):
                raise ModelError(
                    f"{folder} is not a tagger: expected files in it, and {file.name[:80]!r} is none"
                )
        described: dict[str, Any] = dict(
            json.loads((folder / "tagger.json").read_text(encoding="utf-8"))
        )
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ModelError(f"{folder} is not a tagger: it has no readable tagger.json") from error
    if (why := foreign(folder, described.get("format_version"), FORMAT_VERSION)) is not None:
        raise ModelError(why)
    lacking = [key for key in ("encoder", "head", "tags", "settings") if key not in described]
    if lacking:
        raise ModelError(f"{folder} is not a tagger: its tagger.json lacks {', '.join(lacking)}")
    return described


def _checksum(file: Path) -> int:
    number = 0
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK):
            number = crc32(chunk, number)
    return number
