"""The files of a run directory, read and written; a damaged one is an error that names it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented
from seqmix.data.files import version_problem, write_text
from seqmix.data.formats.records import json_lines
from seqmix.errors import DataError, RunError
from seqmix.loop.round_record import FORMAT_VERSION, RoundRecord, are_windows, has_numbers
from seqmix.query.part import Window

_HALF = re.compile("[\ud800-\udfff]")  # could not be written again


def read_rounds(folder: Path) -> list[RoundRecord]:
    """Return the finished rounds of a run directory."""
    path = folder / "rounds.jsonl"
    rounds: list[RoundRecord] = []
    for number, line in enumerate(read_lines(path)):
        if (why := version_problem(folder, line.get("format_version"), FORMAT_VERSION)) is not None:
            raise RunError(why)
        with damaged(path):
            try:
                record = RoundRecord.from_json(line)
            except ValueError as error:
                raise ValueError(
                    f"line {number + 1} has no round {number} with a good '{error}'"
                ) from error
            if record.number != number:
                raise ValueError(f"line {number + 1} has no round {number} with a good 'round'")
        rounds.append(record)
    return rounds


def read_timings(folder: Path) -> dict[int, dict[str, float]]:
    """Return the seconds each phase of a round took, by round; rounds.jsonl has no times in it."""
    path = folder / "timings.jsonl"
    lines = read_lines(path)
    with damaged(path):
        return {
            line["round"]: {phase: float(spent) for phase, spent in line["seconds"].items()}
            for line in lines
        }


def read_generated(path: Path, round: int, described: Mapping[str, Any]) -> list[Augmented]:
    """Return what a round generated, as many as its description says."""
    with damaged(path):
        generated = [Augmented.from_record(record) for record in read_lines(path)]
        if len(generated) != described["generated"]:
            raise ValueError(
                f"it has {len(generated)} sentences instead of {described['generated']}"
            )
        for augmented in generated:
            id = augmented.sentence.id
            if not id.startswith(f"r{round}/"):
                raise ValueError(f"the id {id[:80]!r} does not belong to round {round}")
    return generated


@dataclass(frozen=True)
class Chosen:
    """What a round asks for."""

    ids: list[str] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    parts: list[Window] | None = None  # None: all of each sentence
    pieces: int | None = 0  # that a committee read in its training


def read_chosen(path: Path) -> Chosen:
    """Return what a round asked for."""
    chosen = read_object(path, ids=list, scores=list)
    with damaged(path):
        if not all(isinstance(id, str) for id in chosen["ids"]) or len(chosen["ids"]) != len(
            chosen["scores"]
        ):
            raise ValueError("expected ids, and a score for each")
        if not all(score is None or type(score) in (int, float) for score in chosen["scores"]):
            raise ValueError("expected scores to be numbers or null")
        parts = chosen.get("parts")
        if not are_windows(parts, len(chosen["ids"])):
            raise ValueError("expected parts to be a start and an end for each id")
        parts = parts and [(start, end) for start, end in parts]
    return Chosen(chosen["ids"], chosen["scores"], parts, _count(chosen, path, 0))


def read_trained(path: Path) -> int | None:
    """Return how many word pieces a round's training read; older runs do not tell."""
    return _count(read_object(path), path, None) if path.exists() else None


def _count(content: Mapping[str, Any], path: Path, default: int | None) -> int | None:
    pieces = content.get("pieces", default)
    with damaged(path):
        if pieces is not None and type(pieces) is not int:
            raise ValueError("expected pieces to be a whole number or null")
    return pieces


def read_described(path: Path, asked: int) -> dict[str, Any]:
    """Return the description of a round's augmentation, of which `asked` sentences were asked."""
    described = read_object(path, asked=int, generated=int)
    with damaged(path):
        if described["asked"] != asked:
            raise ValueError(f"it was asked for {described['asked']} sentences instead of {asked}")
        if not has_numbers(described.get("counts") or {}):
            raise ValueError("expected counts to be an object of numbers")
    return described


def read_predictions(path: Path, lengths: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the tags a round predicted by sentence id; `lengths` says how many each has."""
    predicted = read_object(path)
    with damaged(path):
        for id, tags in predicted.items():
            if (
                not isinstance(tags, list)
                or len(tags) != lengths[id]
                or not all(isinstance(tag, str) for tag in tags)
            ):
                raise ValueError(f"expected {lengths[id]} tags of {id[:80]!r}")
    return predicted


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a file of lines; none where there is no file."""
    with damaged(path):
        return [record for _, record, _ in json_lines(path)] if path.exists() else []


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write JSON objects as a file of lines."""
    write_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def add_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line by rewriting the file, so that none is ever torn; the same round is replaced."""
    kept = [old for old in read_lines(path) if old.get("round") != line["round"]]
    write_lines(path, [*kept, line])


def read_object(path: Path, **kinds: type) -> dict[str, Any]:
    """Return a small JSON file that holds an object with keys of these kinds."""
    with damaged(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not all(
            type(content.get(key)) is kind for key, kind in kinds.items()
        ):
            raise ValueError(f"expected {' and '.join(kinds) or 'an object'}")
        if _HALF.search(json.dumps(content, ensure_ascii=False)):
            raise ValueError("expected whole characters, found half of a surrogate pair")
    return content


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Name the file that cannot be read, and what to do: an unfinished round can be done again."""
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
        text = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, DataError):
            text = f"line {error.line}: {error.expected}" if error.line else error.expected
        why = (str(text).splitlines() or [type(error).__name__])[0]
        again = (
            f"; if its round is not in rounds.jsonl, remove {path.parent} instead "
            "and it is done again"
        )
        raise RunError(
            f"{path} is damaged: {why}; restore it from a backup"
            + again * path.parent.name.isdecimal()
        ) from error
