"""Console output: results on standard output; progress and errors on standard error."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console

_CONTROLS = re.compile(  # also marks that reorder letters, and halves of surrogate pairs
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
EVERY = 10.0  # seconds between two lines of progress
err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line about what happens on standard error."""
    err.print(safe(text), markup=False)


def emit(text: str) -> None:
    """Print a line of the result on standard output."""
    sys.stdout.write(safe(text) + "\n")


def safe(text: str) -> str:
    """Escape what a terminal would obey, since tags and names come from files of strangers.

    JSON stays the same JSON.
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def count(n: int, noun: str) -> str:
    """Return `1 sentence`, `2 sentences`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def duration(seconds: float) -> str:
    """Return seconds as people say them: 80 s, 12 min or 2.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def percent(share: float) -> str:
    """Return a share as a percentage: 0.8127 -> 81.3."""
    return f"{100 * share:.1f}"


@contextmanager
def progress(what: str, unit: str = "steps") -> Iterator[Callable[..., None]]:
    """Yield a function of (done, total, loss) that shows a bar, or a line every ten seconds."""
    with _bar(what) if err.is_terminal else nullcontext(_lines(what, unit)) as update:
        yield update


@contextmanager
def _bar(what: str) -> Iterator[Callable[..., None]]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    text, note = TextColumn(what), TextColumn("{task.fields[note]}")
    columns = (text, BarColumn(), MofNCompleteColumn(), note, TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(what, total=None, note="")

        def update(done: int, total: int | None = None, loss: float | None = None) -> None:
            loss_note = "" if loss is None else f"loss {loss:.3f}"
            bar.update(task, completed=done, total=total, note=loss_note)

        yield update


def _lines(what: str, unit: str) -> Callable[..., None]:
    start = last = time.monotonic()

    def update(done: int, total: int | None = None, loss: float | None = None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < EVERY and done != total:
            return
        last, left = now, ""
        if total and 0 < done < total:
            left = f", about {(now - start) / done * (total - done):.0f} s left"
        of = f" of {total}" if total else ""
        loss_note = "" if loss is None else f", loss {loss:.3f}"
        say(f"{what}: {done}{of} {unit}{loss_note}{left}")

    return update


@contextmanager
def throughput(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows how many sentences are done, and how many per second."""
    start = last = time.monotonic()
    before: int | None = None
    status = err.status(what) if err.is_terminal else None

    def update(done: int) -> None:
        nonlocal last, before
        now = time.monotonic()
        before = done if before is None else before  # an earlier try's work says nothing of speed
        if now - last < (1 if status else EVERY) and done != total:
            return
        last, rate = now, (done - before) / max(now - start, 1e-9)
        left = ""
        if total and rate and done < total:
            left = f", about {(total - done) / rate:.0f} s left"
        of = f" of {total}" if total else ""
        text = f"{what}: {done}{of} sentences, {rate:.0f} per second{left}"
        status.update(text) if status else say(text)

    with status or nullcontext():
        yield update
