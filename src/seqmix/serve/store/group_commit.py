"""Group commit: answers that arrive together are written in one transaction, so that they share one wait for the disk.

Each still is on the disk before its sender hears of it. On a slow disk eight people who save at once would wait for each other's eight
syncs, and whoever asks for the next sentence behind them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from seqmix.errors import DataError, NotFoundError, StaleError
from seqmix.serve.store.store import Store

T = TypeVar("T")
_MOST = 64  # jobs to a transaction
_REFUSALS = (DataError, NotFoundError, StaleError)  # what is wrong with one job and no other


@dataclass(frozen=True)
class _Job:
    work: Callable[[], Any]
    durable: bool
    future: Future[Any] = field(default_factory=Future)


class Turns:
    """One thread that does all writing of a server, as many jobs at a time as are waiting."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True, name="writer")
        self._thread.start()

    async def take(self, work: Callable[[], T], durable: bool = True) -> T:
        """What `work` returns, once it is written for good; `work` uses the store as it would alone."""
        job = _Job(work, durable)
        self._jobs.put(job)
        result: T = await asyncio.wrap_future(job.future)
        return result

    def close(self) -> None:
        """Finish what is waiting, and end."""
        self._jobs.put(None)
        self._thread.join(10)

    def _run(self) -> None:
        going = True
        while going:
            waiting = [self._jobs.get()]
            try:
                while len(waiting) < _MOST:
                    waiting.append(self._jobs.get_nowait())
            except Empty:
                pass
            going = None not in waiting
            jobs = [
                job
                for job in waiting
                if job is not None and job.future.set_running_or_notify_cancel()
            ]
            if jobs:
                self._together(jobs)

    def _together(self, jobs: Sequence[_Job]) -> None:
        """subtle: nobody is told anything before the commit. A refused job is rolled back alone; any other trouble takes all with it."""
        results: list[tuple[_Job, Any, Exception | None]] = []
        try:
            with self._store.writing(durable=any(job.durable for job in jobs)) as conn:
                for job in jobs:
                    try:
                        with conn.begin_nested():
                            results.append((job, job.work(), None))
                    except _REFUSALS as refusal:
                        results.append((job, None, refusal))
        except Exception as error:
            results = [(job, None, error) for job in jobs]
        for job, result, trouble in results:
            if trouble is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(trouble)
