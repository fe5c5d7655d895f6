"""Jobs in long-lived processes of their own: what a job loads is there for the next one, and one that dies takes nobody along.

Processes are spawned, not forked: CUDA and threads do not survive a fork. They end when their parent does, however it ends.
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
Tell = Callable[[Any], None]
Work = Callable[
    [J, Tell], Any
]  # done in a worker: a function of a module, or a partial of one, since it is pickled
_TRIES = 2  # for a job whose worker dies
_PATIENCE = 20.0  # seconds for a worker to leave


@dataclass(frozen=True)
class Event(Generic[J]):
    """What a job said (`told`), gave (`done`), or failed of: value is then the last line of its traceback."""

    kind: Literal["told", "done", "failed"]
    job: J
    value: Any = None
    trace: str = ""


class Crew(Protocol):
    """Something that works through jobs: processes here, as below, or a cluster's."""

    def __call__(
        self,
        jobs: Sequence[J],
        work: Work[J],
        workers: int,
        hear: Callable[[Event[J]], None],
        may_start: Callable[[], bool] = ...,
    ) -> list[J]:
        """Do the jobs in order, `workers` at a time, and tell of each; those not started because `may_start` said no are returned."""
        ...


def work_through(
    jobs: Sequence[J],
    work: Work[J],
    workers: int,
    hear: Callable[[Event[J]], None],
    may_start: Callable[[], bool] = lambda: True,
) -> list[J]:
    """Do the jobs in order, `workers` at a time; those not started because `may_start` said no are returned."""
    waiting, deaths = deque(jobs), Counter[int]()  # by id: a job need not be hashable
    crew: list[_Worker[J]] = []
    try:
        while True:
            while (
                waiting
                and may_start()
                and (len(crew) < workers or any(worker.job is None for worker in crew))
            ):
                _hand_out(waiting, crew, work, workers)
            busy = {worker.link: worker for worker in crew if worker.job is not None}
            if not busy:
                return list(waiting)
            for link in wait(list(busy)):
                event = _heard(busy[link], crew, waiting, deaths)  # type: ignore[index]  # wait gives back what it was given
                if event is not None:
                    hear(event)
    except BaseException:
        for worker in crew:
            worker.process.terminate()
        raise
    finally:
        for worker in crew:
            with suppress(OSError):
                worker.link.send(None)
        for worker in crew:
            worker.leave()


@dataclass(eq=False)
class _Worker(Generic[J]):
    process: BaseProcess
    link: Connection
    job: J | None = None

    def hear(self) -> Event[J] | None:
        """What it says now; None when it is dead."""
        assert self.job is not None
        try:
            kind, value, trace = self.link.recv()
        except (EOFError, OSError):
            return None
        event = Event(kind, self.job, value, trace)
        if kind != "told":
            self.job = None
        return event

    def leave(self) -> int | None:
        """Wait for its end, hasten it if need be; its exit code."""
        self.link.close()
        self.process.join(_PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        code = self.process.exitcode
        self.process.close()
        return code


def _heard(
    worker: _Worker[J], crew: list[_Worker[J]], waiting: deque[J], deaths: Counter[int]
) -> Event[J] | None:
    """What a worker says; None when it died and its job is to be tried once more."""
    job, event = worker.job, worker.hear()
    assert job is not None
    if event is not None:
        if event.trace:  # it leaves by itself, see _serve
            crew.remove(worker)
            worker.leave()
        return event
    crew.remove(worker)  # it was killed, or memory ran out, or native code crashed
    code = worker.leave()
    deaths[id(job)] += 1
    if deaths[id(job)] < _TRIES:
        waiting.appendleft(job)
        return None
    return Event(
        "failed",
        job,
        f"its process died {_TRIES} times ({_how(code)}); if memory ran out, lower --workers",
    )


def _hand_out(waiting: deque[J], crew: list[_Worker[J]], work: Work[J], workers: int) -> None:
    """Give the next job to an idle worker, or to a new one."""
    worker = next((worker for worker in crew if worker.job is None), None) or _hired(work, workers)
    if worker not in crew:
        crew.append(worker)
    try:
        worker.link.send(waiting[0])
    except OSError:  # it died while it had nothing to do: no job's fault
        crew.remove(worker)
        worker.leave()
    else:
        worker.job = waiting.popleft()


def _hired(work: Work[J], workers: int) -> _Worker[J]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    resource_tracker.ensure_running()  # subtle: the first start would start it, and that lets Ctrl-C through again
    ctrl_c = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT}
    )  # a worker inherits this: Ctrl-C is the parent's to answer
    try:
        share = str(max(1, cores() // workers))
        # the last: as `seqmix` sets it for itself, which comes too late where a worker loads torch first
        with unless_set(
            {"OMP_NUM_THREADS": share, "RAYON_NUM_THREADS": share, "OMP_WAIT_POLICY": "PASSIVE"}
        ):
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, ctrl_c)
    theirs.close()
    return _Worker(process, ours)


def cores() -> int:
    """Cores this process may use, where the system tells (macOS does not), else all there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def unless_set(values: Mapping[str, str]) -> Iterator[None]:
    """The environment of processes that are started meanwhile. Libraries read theirs once, when they load; what the user set stays."""
    own = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(own)
    try:
        yield
    finally:
        for name in own:
            del os.environ[name]


def _serve(link: Connection, work: Work[J]) -> None:
    """A worker's life."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while (job := _next(link)) is not None:
        kind, value, trace = outcome(work, job, lambda news: link.send(("told", news, "")))
        link.send((kind, value, trace))
        if trace:
            return  # subtle: a CUDA error spoils the process for every later job, so a fresh one takes over


def outcome(work: Work[J], job: J, tell: Tell) -> tuple[Literal["done", "failed"], Any, str]:
    """What becomes of a job: what it gives, or why it failed; with a traceback if nobody foresaw that."""
    try:
        return "done", work(job, tell), ""
    except SeqMixError as error:
        return "failed", str(error), ""
    except Exception as error:
        return (
            "failed",
            " ".join(traceback.format_exception_only(error)[-1].split()),
            traceback.format_exc(),
        )


def _next(link: Connection) -> Any:
    """The next job; None when there is none, or nobody to give it."""
    try:
        return link.recv()
    except EOFError:
        return None


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _how(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
