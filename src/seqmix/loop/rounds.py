"""What a run directory says of itself, read back: every file may be damaged, and whoever reads it says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented
from seqmix.data.formats.records import json_lines
from seqmix.errors import DataError, RunError

FORMAT_VERSION = 1
_WHOLE = ("round", "seed", "labeled", "tokens", "generated")


def read_rounds(folder: Path) -> list[dict[str, Any]]:
    """The finished rounds of a run directory."""
    path = folder / "rounds.jsonl"
    done = list(records(path, "remove its broken last line to go on from the round before"))
    for number, line in enumerate(done):
        if line.get("format_version") != FORMAT_VERSION:
            found = line.get("format_version")
            raise RunError(f"{folder} was written by another version (format {found!r}, this is {FORMAT_VERSION}); start a new run")
        wrong = _wrong(line)
        if wrong is not None or line["round"] != number:
            raise RunError(f"{path} is damaged: line {number + 1} has no round {number} with a good {wrong or 'round'!r}; start a new run")
    return done


def records(path: Path, hint: str = "start a new run") -> Iterator[dict[str, Any]]:
    """The JSON objects of a file of lines; none where there is no file."""
    try:
        if path.exists():
            yield from (record for _, record, _ in json_lines(path))
    except DataError as error:
        raise RunError(f"{path} is damaged: {error}; {hint}") from error


def read_object(path: Path, **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """A small JSON file that holds an object with these keys."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({type(error).__name__}); remove it to do this step again") from error
    if not isinstance(found, dict) or not all(isinstance(found.get(key), kind) for key, kind in kinds.items()):
        raise RunError(f"{path} is damaged: expected an object with {', '.join(kinds)}; remove it to do this step again")
    return found


def read_generated(path: Path) -> list[Augmented]:
    """The generated sentences of a file; none where there is no file."""
    try:
        return [Augmented.from_record(record) for record in records(path)]
    except DataError as error:
        raise RunError(f"{path} is damaged: {error}; start a new run") from error


def _wrong(line: Mapping[str, Any]) -> str | None:
    """The first key of a round that is not what it should be."""
    scores = {split: line[split] for split in ("dev", "test") if split in line}
    good = {
        **{key: type(line.get(key)) is int for key in _WHOLE},
        "chosen": isinstance(line.get("chosen"), list) and all(isinstance(id, str) for id in line["chosen"]),
        "augmentation": isinstance(line.get("augmentation"), dict) and type(line["augmentation"].get("asked")) is int,
        "stop": isinstance(line.get("stop", 0), str | None),
        "forecast": "forecast" in line and (line["forecast"] is None or _numbers(line["forecast"], "gain", "low", "high")),
        **{split: _numbers(own, "f1") for split, own in scores.items()},
    }
    return next((key for key, fine in good.items() if not fine), None)


def _numbers(value: Any, *keys: str) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), int | float) for key in keys)
