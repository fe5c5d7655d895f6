"""The trainer's process: it sends heartbeats, yields the processor, and ends with the server."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from seqmix.data.files import locked, make_folder
from seqmix.errors import DataError, RunError, SeqMixError, StoreError
from seqmix.serve.project import Project
from seqmix.serve.project_status import NOTE, WAITING
from seqmix.serve.settings import read_settings
from seqmix.serve.sources.llm.asking import Asker
from seqmix.serve.trainer.parts import Parts
from seqmix.serve.trainer.stages import has_changed
from seqmix.serve.trainer.trainer import Trainer

_BEAT = 5.0  # seconds between heartbeats
_POLL = 1.0  # seconds between looks at the answers
_RETRY = 60.0  # seconds before a training that failed is tried again
_NICE = 10
Watch = Callable[[str], Callable[[int, int, float], None]]  # how far a training is, by its name


def work(project: Project, build: Callable[[Watch], Parts], parent: int | None = None) -> None:
    """Train until the server ends, or until the project has changed and must be opened again.

    `build` returns the parts, which takes a while, once no other trainer runs here.
    """
    _die_with(parent)
    writer = Writer()
    with suppress(OSError):
        os.nice(_NICE)  # this thread and those it starts from now on
    try:
        make_folder(project.models)
    except OSError as error:
        raise DataError(f"cannot keep models here: {error.strerror}", project.models) from error
    while True:
        try:
            with locked(project.models):
                heartbeat = Heartbeat(project, writer)
                heartbeat.start()
                heartbeat.report("loading the encoder")
                try:
                    parts = build(heartbeat.watch)
                    trainer = Trainer(project, parts, heartbeat.report, writer, _log)
                    return train_until_changed(trainer, heartbeat)
                finally:
                    heartbeat.ended = True
        except RunError:  # another server's trainer runs; this one takes over when it ends
            time.sleep(_BEAT)


def train_until_changed(trainer: Trainer, heartbeat: Heartbeat) -> None:
    """Train until the project has changed, with language models that are asked beside it."""
    project = trainer.project
    asker = Asker(
        project.store,
        lambda: read_settings(project.folder).send_text_to.split(),
        lambda: project.guidelines,
        trainer.write,
    )
    asker.start()
    try:
        _train_on(trainer, heartbeat)
    finally:
        asker.stop()


def _train_on(trainer: Trainer, heartbeat: Heartbeat) -> None:
    trainer.clean()
    heartbeat.report(WAITING)
    while not has_changed(trainer.project):
        try:
            if not trainer.step():
                time.sleep(_POLL)
        except StoreError:
            raise  # the server starts another trainer when the store answers again
        except SeqMixError as error:
            heartbeat.report(f"the last training failed: {error}", failed=True)
            time.sleep(_RETRY)


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Writer:
    """Runs what locks the database in a thread of normal priority.

    subtle: a thread that is nice would hold the lock while others, who wait for it, use the cores.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self(lambda: None)  # start the thread before the process becomes nice

    def __call__(self, job: Callable[[], None]) -> None:
        """Run a job and wait for it."""
        self._pool.submit(job).result()


@dataclass
class Heartbeat:
    """Notes in the store what the trainer does, when that changes and every few seconds."""

    project: Project
    write: Callable[[Callable[[], None]], None]
    phase: str = WAITING
    failed: bool = False
    since: float = 0.0
    share: float | None = None  # of the phase that is done
    left: float | None = None  # seconds until its end
    ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def report(self, phase: str, failed: bool = False) -> None:
        """Note what the trainer does now."""
        with self._lock:
            self.phase, self.failed, self.since = phase, failed, time.time()
            self.share = self.left = None
        self.write(self.note)

    def watch(self, phase: str) -> Callable[[int, int, float], None]:
        """Return what a training calls with its steps done, its steps in all, and the loss."""
        last, before = -1, time.monotonic()
        steps, spent = 0, 0.0  # without those in which a model came between

        def progress(done: int, total: int, loss: float) -> None:
            nonlocal last, before, steps, spent
            now, begins = time.monotonic(), last < 0
            if self.phase == phase or begins:
                spent += now - before
                steps += done - (max(0, done - 1) if begins else last)  # it may resume in between
            last, before = done, now
            per_step = spent / steps if steps else None
            if self.phase != phase:  # it begins, or a model that was due came between
                self.report(phase)
            with self._lock:
                self.share = done / total
                self.left = None if per_step is None else per_step * (total - done)

        return progress

    def start(self) -> None:
        """Start a thread for it, since training keeps the main thread busy for minutes."""
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self.ended:
            time.sleep(_BEAT)
            with suppress(StoreError):  # the trainer itself notices a lost store
                self.write(self.note)

    def note(self) -> None:
        """Write down what the trainer does, how far it is, and when that was."""
        with self._lock:
            state = {"phase": self.phase, "failed": self.failed, "since": self.since}
            state |= {"share": self.share, "left": self.left}
        self.project.store.write_note(NOTE, {**state, "at": time.time(), "pid": os.getpid()})


def _die_with(parent: int | None) -> None:
    """End when the server ends, however it ends.

    The kernel's signal comes at once, but only on Linux and not if the server ended before this
    line; polling is slow but always works.
    """
    if parent is None:
        return
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    def poll() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL)
        os._exit(3)

    threading.Thread(target=poll, daemon=True).start()
