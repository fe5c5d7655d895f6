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

from seqmix.data.files import make_folder
from seqmix.data.locks import locked
from seqmix.errors import DataError, RunError, SeqMixError, StoreError
from seqmix.serve.project import Project
from seqmix.serve.project_status import NOTE, WAITING
from seqmix.serve.trainer.trainer import Parts, Trainer

_BEAT = 5.0  # seconds between heartbeats
_POLL = 1.0  # seconds between looks at the answers
_RETRY = 60.0  # seconds before a training that failed is tried again
_NICE = 10


def work(project: Project, build: Callable[[], Parts], parent: int | None = None) -> None:
    """Train until the server ends, or until a tag is added and the project must be opened again.

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
                    return _train(Trainer(project, build(), heartbeat.report, writer), heartbeat)
                finally:
                    heartbeat.ended = True
        except RunError:  # another server's trainer runs; this one takes over when it ends
            time.sleep(_BEAT)


def _train(trainer: Trainer, heartbeat: Heartbeat) -> None:
    trainer.clean(0)
    heartbeat.report(WAITING)
    tags = trainer.project.settings.tags
    while trainer.project.store.read_tags() == tags:
        try:
            if not trainer.step():
                time.sleep(_POLL)
        except StoreError:
            raise  # the server starts another trainer when the store answers again
        except SeqMixError as error:
            heartbeat.report(f"the last training failed: {error}", failed=True)
            time.sleep(_RETRY)


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
    ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def report(self, phase: str, failed: bool = False) -> None:
        """Note what the trainer does now."""
        with self._lock:
            self.phase, self.failed, self.since = phase, failed, time.time()
        self.write(self._note)

    def start(self) -> None:
        """Start a thread for it, since training keeps the main thread busy for minutes."""
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self.ended:
            time.sleep(_BEAT)
            with suppress(StoreError):  # the trainer itself notices a lost store
                self.write(self._note)

    def _note(self) -> None:
        with self._lock:
            state = {"phase": self.phase, "failed": self.failed, "since": self.since}
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
