"""A ranking job, which is resumed after it was interrupted.

Units are scored, and the best of each merged and journaled, so the pool is never held in memory.
The folder of an unfinished job lies beside its output:

OUT.parts/job.json       the settings of the job; another job is refused
OUT.parts/units.jsonl    one line per finished unit: key, sentences seen, candidates for the best
OUT.parts/blocks/        sources that cannot be read from the middle, block by block
OUT.parts/pool/          the same for large sources, as a pool
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from seqmix.data.files import LEFTOVER, locked, replacing, write_text
from seqmix.errors import DataError, RunError
from seqmix.scale.local_executor import Executor, JobEvent
from seqmix.scale.pool import is_pool
from seqmix.scale.ranking import Best, Scored, Scorer, UnitResult, WorkerState, score_unit
from seqmix.scale.shards import Unit

FORMAT_VERSION = 1
Progress = Callable[[int, int], None]  # sentences seen, and rows of finished units


@contextmanager
def side_folder(out: Path, about: dict[str, Any]) -> Iterator[Path]:
    """Lock the folder of an unfinished job; it is removed when the job succeeds or never began."""
    folder = out.with_name(out.name + ".parts")
    with locked(folder):
        settings = {"format_version": FORMAT_VERSION, **about}
        note = folder / "job.json"
        if note.exists():
            before = _read_json(note)
            keys = settings.keys() | before.keys()
            changed = sorted(key for key in keys if settings.get(key) != before.get(key))
            if changed:
                what = ", ".join(f"{key} {before.get(key)!r}" for key in changed)
                raise RunError(
                    f"{folder} holds another unfinished job, with {what}; "
                    "give another --out, or remove the folder"
                )
        else:
            _refuse_other(folder)
            write_text(note, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")
        try:
            yield folder
        except BaseException:
            if not _begun(folder):
                shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def _refuse_other(folder: Path) -> None:
    """Refuse a folder of somebody else's with the name of a job's, which is removed in the end."""
    for path in folder.iterdir():
        if path.name != "lock" and not LEFTOVER.fullmatch(path.name):
            raise DataError(
                "the folder for unfinished work holds other files; give another --out, or move it",
                folder,
                None,
                path.name,
            )


def _begun(folder: Path) -> bool:
    """Return whether there is anything to resume; a job that was refused at once leaves nothing."""
    journal = folder / "units.jsonl"
    return (
        is_pool(folder / "pool")
        or (folder / "blocks").exists()
        or (journal.exists() and journal.stat().st_size > 0)
    )


def score_units(
    units: Sequence[Unit],
    scorer: Scorer,
    folder: Path,
    executor: Executor | None = None,
    workers: int = 1,
    progress: Progress = lambda seen, done: None,
) -> tuple[list[Scored], int]:
    """Return the best of all units and how many sentences they have.

    Without an executor, this process scores all units.
    """
    best, finished = Best(scorer.top), {}
    for key, part in _read_journal(folder / "units.jsonl"):
        best.take(part.best)
        finished[key] = part.seen
    todo = [unit for unit in units if unit.key not in finished]
    seen, done = sum(finished.values()), sum(map(len, units)) - sum(map(len, todo))
    with (folder / "units.jsonl").open("a", encoding="utf-8", newline="\n") as file:

        def on_event(event: JobEvent[Unit]) -> None:
            nonlocal seen, done
            if event.kind == "failed":
                error = RunError(f"{event.job.key}: {event.value}")
                if event.trace:
                    error.add_note(event.trace)
                raise error
            if event.kind == "done":
                part: UnitResult = event.value
                record = [event.job.key, part.seen, part.best]
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
                best.take(part.best)
                seen, done = seen + part.seen, done + len(event.job)
                progress(seen, done)

        progress(seen, done)
        if todo and executor is not None:
            executor(todo, partial(score_unit, scorer), min(workers, len(todo)), on_event)
        elif todo:
            state = WorkerState(scorer)
            for unit in todo:
                on_event(JobEvent("done", unit, state.score(unit)))
    if len({scored.id for scored in best.kept}) != len(best.kept):
        raise DataError(
            "two of the best sentences have the same id; "
            "seqmix rank --pool FOLDER --read ids=content uses digests as ids"
        )
    return best.kept, seen


def write_scored(scored: Sequence[Scored], out: Path) -> None:
    """Write sentences with their scores as JSON lines, which can be read as sentences."""
    with replacing(out) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        for score, id, tokens in scored:
            record = {"id": id, "score": score, "tokens": tokens}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _read_journal(path: Path) -> Iterator[tuple[str, UnitResult]]:
    """Yield the finished units, and cut off a last line that is incomplete."""
    if not path.exists():
        return
    end = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                end += len(line)
                try:
                    key, seen, best = json.loads(line)
                    part = UnitResult(
                        int(seen),
                        tuple(
                            Scored(float(score), str(id), tuple(tokens))
                            for score, id, tokens in best
                        ),
                    )
                except (ValueError, TypeError, RecursionError) as error:
                    raise RunError(
                        f"{path} is damaged ({error}); remove its folder and start again"
                    ) from error
                yield key, part
    os.truncate(path, end)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise RunError(
            f"{path} cannot be read ({error}); remove its folder and start again"
        ) from error
