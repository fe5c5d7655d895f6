"""A scoring job: units out, their best back, merged in a stream and written down as they come, so that a killed job goes on.

The driver holds the best so far and the list of units, never the pool. Beside the output lies a folder while the job is not finished:

OUT.parts/job.json       what is asked of what; another job is refused
OUT.parts/units.jsonl    a line a finished unit: its key, the sentences seen, and what of it may be among the best
OUT.parts/blocks/        sources that cannot be read from the middle, block by block
OUT.parts/pool/          the same of large ones, as a pool
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

from seqmix.data.files import replacing, write_text
from seqmix.data.locks import locked
from seqmix.errors import DataError, RunError
from seqmix.scale.local_executor import Event, Executor
from seqmix.scale.pool import is_pool
from seqmix.scale.ranking import Best, Part, Scored, Scorer, WorkerState, score_unit
from seqmix.scale.shards import Unit

FORMAT_VERSION = 1
Progress = Callable[[int, int], None]  # sentences seen now, and rows of all units that are done


@contextmanager
def side_folder(out: Path, about: dict[str, Any]) -> Iterator[Path]:
    """The folder of an unfinished job, for this process alone; it goes when the job ends well, or before anything is done."""
    folder = out.with_name(out.name + ".parts")
    with locked(folder):
        asked = {"format_version": FORMAT_VERSION, **about}
        note = folder / "job.json"
        if note.exists():
            there = _read_json(note)
            other = sorted(
                key for key in asked.keys() | there.keys() if asked.get(key) != there.get(key)
            )
            if other:
                what = ", ".join(f"{key} {there.get(key)!r}" for key in other)
                raise RunError(
                    f"{folder} holds another unfinished job, with {what}; give another --out, or remove the folder"
                )
        else:
            write_text(note, json.dumps(asked, indent=1, ensure_ascii=False) + "\n")
        try:
            yield folder
        except BaseException:
            if not _begun(folder):
                shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def _begun(folder: Path) -> bool:
    """Whether there is anything to go on with; a job that was refused at once leaves nothing in the way of the next."""
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
    """The best of all units, and how many sentences they have. Without an executor this process does it all."""
    best, finished = Best(scorer.top), {}
    for key, part in _read_journal(folder / "units.jsonl"):
        best.take(part.best)
        finished[key] = part.seen
    todo = [unit for unit in units if unit.key not in finished]
    seen, done = sum(finished.values()), sum(map(len, units)) - sum(map(len, todo))
    with (folder / "units.jsonl").open("a", encoding="utf-8", newline="\n") as file:

        def on_event(event: Event[Unit]) -> None:
            nonlocal seen, done
            if event.kind == "failed":
                error = RunError(f"{event.job.key}: {event.value}")
                if event.trace:
                    error.add_note(event.trace)
                raise error
            if event.kind == "done":
                part: Part = event.value
                file.write(
                    json.dumps([event.job.key, part.seen, part.best], ensure_ascii=False) + "\n"
                )
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
                on_event(Event("done", unit, state.score(unit)))
    if len({one.id for one in best.kept}) != len(best.kept):
        raise DataError(
            "two of the best sentences have the same id; seqmix rank --pool FOLDER --read ids=content gives each its own"
        )
    return best.kept, seen


def write_scored(scored: Sequence[Scored], out: Path) -> None:
    """JSON lines that any reader of sentences takes."""
    with replacing(out) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        for one in scored:
            file.write(
                json.dumps(
                    {"id": one.id, "score": one.score, "tokens": one.tokens}, ensure_ascii=False
                )
                + "\n"
            )


def _read_journal(path: Path) -> Iterator[tuple[str, Part]]:
    """The finished units; a line that was cut short when a job was killed is taken off the file."""
    if not path.exists():
        return
    end = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                end += len(line)
                try:
                    key, seen, best = json.loads(line)
                    part = Part(
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
