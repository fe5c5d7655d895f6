"""What a run directory says of itself, read back: every file may be damaged, and whoever reads it says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented
from seqmix.data.files import version_problem
from seqmix.data.formats.records import json_lines
from seqmix.errors import DataError, RunError

FORMAT_VERSION = 1
_HALF = re.compile("[\ud800-\udfff]")  # could not be written again
_WHOLE = ("round", "seed", "labeled", "tokens", "generated")


def read_rounds(folder: Path) -> list[dict[str, Any]]:
    """The finished rounds of a run directory."""
    path = folder / "rounds.jsonl"
    done = records(path)
    for number, line in enumerate(done):
        if (why := version_problem(folder, line.get("format_version"), FORMAT_VERSION)) is not None:
            raise RunError(why)
        with damaged(path):
            wrong = _wrong(line)
            if wrong is not None or line["round"] != number:
                raise ValueError(
                    f"line {number + 1} has no round {number} with a good {wrong or 'round'!r}"
                )
    return done


def read_generated(path: Path, round: int, described: Mapping[str, Any]) -> list[Augmented]:
    """What a round generated, as many as its description says."""
    with damaged(path):
        found = [Augmented.from_record(record) for record in records(path)]
        if len(found) != described["generated"]:
            raise ValueError(f"it has {len(found)} sentences instead of {described['generated']}")
        for one in found:
            if not one.sentence.id.startswith(f"r{round}/"):
                raise ValueError(f"the id {one.sentence.id[:80]!r} is none of round {round}")
    return found


def read_chosen(path: Path) -> tuple[list[str], list[float | None]]:
    """What a round asked for, and how much it wanted each."""
    known = read_object(path, ids=list, scores=list)
    with damaged(path):
        if not all(isinstance(id, str) for id in known["ids"]) or len(known["ids"]) != len(
            known["scores"]
        ):
            raise ValueError("expected ids, and a score for each")
        if not all(score is None or type(score) in (int, float) for score in known["scores"]):
            raise ValueError("expected scores to be numbers or null")
    return known["ids"], known["scores"]


def read_described(path: Path, asked: int) -> dict[str, Any]:
    """What is said of a round's augmentation; `asked` is how many sentences its settings ask for."""
    described = read_object(path, asked=int, generated=int)
    with damaged(path):
        if described["asked"] != asked:
            raise ValueError(f"it was asked for {described['asked']} sentences instead of {asked}")
    return described


def read_predictions(path: Path, lengths: Mapping[str, int]) -> dict[str, list[str]]:
    """The tags a round predicted, by the id of the sentence; `lengths` says how many each has."""
    found = read_object(path)
    with damaged(path):
        for id, tags in found.items():
            if (
                not isinstance(tags, list)
                or len(tags) != lengths[id]
                or not all(isinstance(tag, str) for tag in tags)
            ):
                raise ValueError(f"expected {lengths[id]} tags of {id[:80]!r}")
    return found


def records(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file of lines; none where there is no file."""
    with damaged(path):
        return [record for _, record, _ in json_lines(path)] if path.exists() else []


def read_object(path: Path, **kinds: type) -> dict[str, Any]:
    """A small JSON file that holds an object with these keys."""
    with damaged(path):
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not all(
            type(found.get(key)) is kind for key, kind in kinds.items()
        ):
            raise ValueError(f"expected {' and '.join(kinds) or 'an object'}")
        if _HALF.search(json.dumps(found, ensure_ascii=False)):
            raise ValueError("expected whole characters, found half of a surrogate pair")
    return found


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Name the file that cannot be read, and what to do: a round that is not finished can be done again, a finished one cannot."""
    try:
        yield
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        DataError,
    ) as error:
        told = (
            error.expected
            if isinstance(error, DataError)
            else error.strerror
            if isinstance(error, OSError)
            else str(error)
        )
        why = (str(told).splitlines() or [type(error).__name__])[0]
        again = f"; if its round is not in rounds.jsonl, remove {path.parent} instead and it is done again"
        raise RunError(
            f"{path} is damaged: {why}; restore it from a backup"
            + again * path.parent.name.isdecimal()
        ) from error


def _wrong(line: Mapping[str, Any]) -> str | None:
    """The first key of a round that is not what it should be."""
    scores = {split: line[split] for split in ("dev", "test") if split in line}
    good = {
        **{key: type(line.get(key)) is int for key in _WHOLE},
        "chosen": isinstance(line.get("chosen"), list)
        and all(isinstance(id, str) for id in line["chosen"]),
        "augmentation": isinstance(line.get("augmentation"), dict)
        and type(line["augmentation"].get("asked")) is int,
        "stop": isinstance(line.get("stop", 0), str | None),
        "agreement": isinstance(line.get("agreement", ""), int | float | None),
        "forecast": "forecast" in line
        and (line["forecast"] is None or _numbers(line["forecast"], "gain", "low", "high")),
        **{split: _numbers(own, "f1") for split, own in scores.items()},
    }
    return next((key for key, fine in good.items() if not fine), None)


def _numbers(value: Any, *keys: str) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), int | float) for key in keys)
