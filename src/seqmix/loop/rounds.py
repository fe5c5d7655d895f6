"""What a run directory says of itself, read back: every file may be damaged, and whoever reads it says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented
from seqmix.data.formats.records import json_lines
from seqmix.data.versions import foreign
from seqmix.errors import DataError, RunError

FORMAT_VERSION = 1
_WHOLE = ("round", "seed", "labeled", "tokens", "generated")


def read_rounds(folder: Path) -> list[dict[str, Any]]:
    """The finished rounds of a run directory."""
    path = folder / "rounds.jsonl"
    done = records(path)
    for number, line in enumerate(done):
        if (why := foreign(folder, line.get("format_version"), FORMAT_VERSION)) is not None:
            raise RunError(why)
        with damaged(path):
            wrong = _wrong(line)
            if wrong is not None or line["round"] != number:
                raise ValueError(f"line {number + 1} has no round {number} with a good {wrong or 'round'!r}")
    return done


def read_generated(path: Path, described: Mapping[str, Any]) -> list[Augmented]:
    """What a round generated, as many as its description says."""
    with damaged(path):
        found = [Augmented.from_record(record) for record in records(path)]
        if len(found) != described["generated"]:
            raise ValueError(f"it has {len(found)} sentences instead of {described['generated']}")
    return found


def records(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file of lines; none where there is no file."""
    with damaged(path):
        return [record for _, record, _ in json_lines(path)] if path.exists() else []


def read_object(path: Path, **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """A small JSON file that holds an object with these keys."""
    with damaged(path):
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not all(isinstance(found.get(key), kind) for key, kind in kinds.items()):
            raise ValueError(f"expected {' and '.join(kinds) or 'an object'}")
    return found


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Name the file that cannot be read, and what to do: a round that is not finished can be done again, a finished one cannot."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, DataError) as error:
        told = error.expected if isinstance(error, DataError) else error.strerror if isinstance(error, OSError) else str(error)
        why = (str(told).splitlines() or [type(error).__name__])[0]
        again = f"; if its round is not in rounds.jsonl, remove {path.parent} instead and it is done again"
        raise RunError(f"{path} is damaged: {why}; restore it from a backup" + again * path.parent.name.isdecimal()) from error


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
