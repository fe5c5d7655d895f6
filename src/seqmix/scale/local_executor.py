"""Run jobs in long-lived worker processes, which keep what a job loaded for the next one.

Processes are spawned, since CUDA and threads do not survive a fork, and end when their parent does.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Literal, Protocol, TypeVar

from seqmix.errors import SeqMixError

J = TypeVar("J")
Emit = Callable[[Any], None]  # sends a value to the caller before the job is done
Work = Callable[[J, Emit], Any]  # pickled: a function of a module, or a partial of one
_TRIES = 2  # for a job whose worker dies
_PATIENCE = 20.0  # seconds for a worker to leave


@dataclass(frozen=True)
class JobEvent(Generic[J]):
    """A job emitted a value, is done with a result, or failed with an error."""

    kind: Literal["emitted", "done", "failed"]
    job: J
    value: Any = None
    trace: str = ""  # of an error that is not ours


class Executor(Protocol):
    """Runs jobs, `workers` at a time: in processes of this machine, or on a cluster."""

    def __call__(
        self,
        jobs: Sequence[J],
        work: Work[J],
        workers: int,
        on_event: Callable[[JobEvent[J]], None],
        may_start: Callable[[], bool] = ...,
    ) -> list[J]:
        """Start the jobs in order while `may_start`, and return those that were not started."""
        ...


def run_jobs(
    jobs: Sequence[J],
    work: Work[J],
    workers: int,
    on_event: Callable[[JobEvent[J]], None],
    may_start: Callable[[], bool] = lambda: True,
) -> list[J]:
    """Run jobs in processes; see `Executor`."""
    waiting, deaths = deque(jobs), Counter[int]()  # by id: a job need not be hashable
    pool: list[_Worker[J]] = []
    try:
        while True:
            while (
                waiting
                and may_start()
                and (len(pool) < workers or any(worker.job is None for worker in pool))
            ):
                _assign(waiting, pool, work, workers)
            busy: dict[Any, _Worker[J]] = {w.link: w for w in pool if w.job is not None}
            if not busy:
                return list(waiting)
            for link in wait(list(busy)):
                event = _next_event(busy[link], pool, waiting, deaths)
                if event is not None:
                    on_event(event)
    except BaseException:
        for worker in pool:
            worker.process.terminate()
        raise
    finally:
        for worker in pool:
            with suppress(OSError):
                worker.link.send(None)
        for worker in pool:
            worker.join()


@dataclass(eq=False)
class _Worker(Generic[J]):
    process: BaseProcess
    link: Connection
    job: J | None = None

    def receive(self) -> JobEvent[J] | None:
        """Return the next event; None when the process is dead."""
        assert self.job is not None
        try:
            kind, value, trace = self.link.recv()
        except (EOFError, OSError):
            return None
        event = JobEvent(kind, self.job, value, trace)
        if kind != "emitted":
            self.job = None
        return event

    def join(self) -> int | None:
        """Wait for the process to end, kill it if need be, and return its exit code."""
        self.link.close()
        self.process.join(_PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        code = self.process.exitcode
        self.process.close()
        return code


def _next_event(
    worker: _Worker[J], pool: list[_Worker[J]], waiting: deque[J], deaths: Counter[int]
) -> JobEvent[J] | None:
    """Return a worker's next event; None when it died and its job is tried once more."""
    job, event = worker.job, worker.receive()
    assert job is not None
    if event is not None:
        if event.trace:  # the process ends by itself, see _serve
            pool.remove(worker)
            worker.join()
        return event
    pool.remove(worker)  # it was killed, or memory ran out, or native code crashed
    code = worker.join()
    deaths[id(job)] += 1
    if deaths[id(job)] < _TRIES:
        waiting.appendleft(job)
        return None
    why = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
    died = f"its process died {_TRIES} times ({why}); if memory ran out, lower --workers"
    return JobEvent("failed", job, died)


def _assign(waiting: deque[J], pool: list[_Worker[J]], work: Work[J], workers: int) -> None:
    """Give the next job to an idle worker, or to a new one."""
    worker = next((worker for worker in pool if worker.job is None), None)
    if worker is None:
        worker = _start_worker(work, workers)
        pool.append(worker)
    try:
        worker.link.send(waiting[0])
    except OSError:  # it died while idle: the job is not to blame
        pool.remove(worker)
        worker.join()
    else:
        worker.job = waiting.popleft()


def _start_worker(work: Work[J], workers: int) -> _Worker[J]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    # subtle: otherwise the first start would start it, and that unblocks Ctrl-C
    resource_tracker.ensure_running()
    ctrl_c = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited by the worker
    try:
        share = str(max(1, cores() // workers))
        # the last, which `seqmix` sets for itself, comes too late where a worker loads torch first
        with unless_set(
            {"OMP_NUM_THREADS": share, "RAYON_NUM_THREADS": share, "OMP_WAIT_POLICY": "PASSIVE"}
        ):
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, ctrl_c)
    theirs.close()
    return _Worker(process, ours)


def cores() -> int:
    """Return how many cores this process may use; where the system cannot say, all there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def unless_set(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes started meanwhile, except those the user set."""
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _serve(link: Connection, work: Work[J]) -> None:
    """Run the jobs that come over the link; the main function of a worker."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while (job := _receive_job(link)) is not None:
        kind, value, trace = attempt(work, job, lambda value: link.send(("emitted", value, "")))
        link.send((kind, value, trace))
        if trace:
            return  # a CUDA error spoils the process for later jobs, so a fresh one takes over


def attempt(work: Work[J], job: J, emit: Emit) -> tuple[Literal["done", "failed"], Any, str]:
    """Run a job and return its result, or its error with a traceback if it is not one of ours."""
    try:
        return "done", work(job, emit), ""
    except SeqMixError as error:
        return "failed", str(error), ""
    except Exception as error:
        message = " ".join(traceback.format_exception_only(error)[-1].split())
        return "failed", message, traceback.format_exc()


def _receive_job(link: Connection) -> Any:
    try:
        return link.recv()
    except EOFError:
        return None


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
