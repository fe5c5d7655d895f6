"""What the command line says: progress with an ETA on a terminal, plain lines elsewhere; errors in one line."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_OBEYED = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)  # controls, order of letters, halves
EVERY = 10.0  # seconds between two lines of progress
err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def say(text: str) -> None:
    """A line about what happens, on standard error; results go to standard output."""
    err.print(safe(text), markup=False)


def emit(text: str) -> None:
    """A line of the result, on standard output."""
    sys.stdout.write(safe(text) + "\n")


def safe(text: str) -> str:
    """The text without what a terminal would obey: tags and names come from files of strangers. What was JSON is the same JSON."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def count(n: int, noun: str) -> str:
    """`1 sentence`, `2 sentences`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


@contextmanager
def progress(what: str, unit: str = "steps") -> Iterator[Callable[..., None]]:
    """A function to call with (done, total, loss or nothing): a bar with an ETA, or a plain line every ten seconds."""
    if err.is_terminal:
        columns = (
            TextColumn(what),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task(what, total=None, note="")

            def update(done: int, total: int | None = None, loss: float | None = None) -> None:
                bar.update(
                    task,
                    completed=done,
                    total=total,
                    note="" if loss is None else f"loss {loss:.3f}",
                )

            yield update
        return
    start = last = time.monotonic()

    def line(done: int, total: int | None = None, loss: float | None = None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY or done == total:
            last = now
            left = (
                f", about {(now - start) / done * (total - done):.0f} s left"
                if total and 0 < done < total
                else ""
            )
            say(
                f"{what}: {done}{f' of {total}' if total else ''} {unit}{'' if loss is None else f', loss {loss:.3f}'}{left}"
            )

    yield line


@contextmanager
def throughput(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show how many sentences are done, and how many a second; a line every ten seconds."""
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
        left = f", about {(total - done) / rate:.0f} s left" if total and rate else ""
        of = f" of {total}" if total else ""
        text = f"{what}: {done}{of} sentences, {rate:.0f} per second{left * (done != total)}"
        status.update(text) if status else say(text)

    with status or nullcontext():
        yield update
