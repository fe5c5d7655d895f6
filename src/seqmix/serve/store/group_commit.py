"""Group commit: answers that arrive together share one transaction and so one wait for the disk.

Each answer is on the disk before its sender gets a response. Without this, eight people who save at
once would wait for each other's eight syncs, and whoever asks for the next sentence behind them.
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
_REFUSALS = (DataError, NotFoundError, StaleError)  # errors that concern a single job


@dataclass(frozen=True)
class _Job:
    work: Callable[[], Any]
    durable: bool
    future: Future[Any] = field(default_factory=Future)


class GroupCommit:
    """The only thread of a server that writes, as many jobs at a time as are waiting."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True, name="writer")
        self._thread.start()

    async def commit(self, work: Callable[[], T], durable: bool = True) -> T:
        """Return what `work` returns, once what it wrote to the store is committed."""
        job = _Job(work, durable)
        self._jobs.put(job)
        result: T = await asyncio.wrap_future(job.future)
        return result

    def close(self) -> None:
        """Finish the waiting jobs and stop."""
        self._jobs.put(None)
        self._thread.join(10)

    def _run(self) -> None:
        running = True
        while running:
            waiting = [self._jobs.get()]
            try:
                while len(waiting) < _MOST:
                    waiting.append(self._jobs.get_nowait())
            except Empty:
                pass
            running = None not in waiting
            jobs = [
                job
                for job in waiting
                if job is not None and job.future.set_running_or_notify_cancel()
            ]
            if jobs:
                self._commit(jobs)

    def _commit(self, jobs: Sequence[_Job]) -> None:
        """Run jobs in one transaction; a refused job is rolled back alone.

        subtle: no future is resolved before the commit, which can still fail for all of them.
        """
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
        for job, result, failure in results:
            if failure is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(failure)
