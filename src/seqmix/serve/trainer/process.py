"""The life of the trainer's process: it says that it lives, gives way to others, and never outlives the server."""

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

_BEAT = 5.0  # seconds between two signs of life
_LOOK = 1.0  # … and between two looks at the answers
_AGAIN = 60.0  # … and before a training that failed is tried again
_NICE = 10


def work(project: Project, build: Callable[[], Parts], parent: int | None = None) -> None:
    """Train until the server is gone, or until a tag is added: then the project is to be opened anew.

    `build` makes the parts, which takes a while, once it is certain that nobody else trains here.
    """
    _die_with(parent)
    writer = Writer()
    with suppress(OSError):
        os.nice(_NICE)  # this thread, and those it starts from now on
    try:
        make_folder(project.models)
    except OSError as error:
        raise DataError(f"cannot keep models here: {error.strerror}", project.models) from error
    while True:
        try:
            with locked(project.models):
                pulse = Pulse(project, writer)
                pulse.start()
                pulse.say("loading the encoder")
                try:
                    return _train(Trainer(project, build(), pulse.say, writer), pulse)
                finally:
                    pulse.ended = True
        except RunError:  # another server of this project has a trainer; when it ends we take over
            time.sleep(_BEAT)


def _train(trainer: Trainer, pulse: Pulse) -> None:
    trainer.clean(0)
    pulse.say(WAITING)
    tags = trainer.project.settings.tags
    while trainer.project.store.read_tags() == tags:
        try:
            if not trainer.step():
                time.sleep(_LOOK)
        except StoreError:
            raise  # without its store it is of no use: the server starts another one
        except SeqMixError as error:
            pulse.say(f"the last training failed: {error}", failed=True)
            time.sleep(_AGAIN)


class Writer:
    """Does what holds the database's lock in a thread that gives way to nobody.

    subtle: a process that is nice holds a lock for as long as others keep it off the cores, and these others wait for the lock.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self(lambda: None)  # the thread is there from now on, before anybody is nice

    def __call__(self, job: Callable[[], None]) -> None:
        """Do it, and wait until it is done."""
        self._pool.submit(job).result()


@dataclass
class Pulse:
    """Notes in the store what the trainer does: at once when that changes, and every few seconds that it still does."""

    project: Project
    write: Callable[[Callable[[], None]], None]
    phase: str = WAITING
    failed: bool = False
    since: float = 0.0
    ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def say(self, phase: str, failed: bool = False) -> None:
        """What it does now."""
        with self._lock:
            self.phase, self.failed, self.since = phase, failed, time.time()
        self.write(self._note)

    def start(self) -> None:
        """Beat in a thread of its own: training keeps the main one busy for minutes."""
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self.ended:
            time.sleep(_BEAT)
            with suppress(StoreError):  # a store that is gone is noticed by the trainer itself
                self.write(self._note)

    def _note(self) -> None:
        with self._lock:
            said = {"phase": self.phase, "failed": self.failed, "since": self.since}
        self.project.store.write_note(NOTE, {**said, "at": time.time(), "pid": os.getpid()})


def _die_with(parent: int | None) -> None:
    """End when the server ends, however it ends.

    subtle: the kernel's signal comes at once but only on Linux, and not if the server died before this line; looking comes late but
    always.
    """
    if parent is None:
        return
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(3)

    threading.Thread(target=look, daemon=True).start()
