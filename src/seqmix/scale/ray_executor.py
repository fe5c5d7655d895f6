"""Run jobs in the actors of a Ray cluster, which are replaced when they or their nodes die.

Nodes need this package and see files (pool, model, run directory) under the same paths.
Jobs are given one at a time to actors that have started, so a small or shrinking cluster is slower.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from seqmix.errors import RunError
from seqmix.extras import import_extra
from seqmix.scale.local_executor import JobEvent, Work, attempt

J = TypeVar("J")
AS_MANY_AS_FIT = 0  # workers
TRIES = 4  # for a job whose actor dies, and to start actors: nodes of a cluster come and go
_PAUSE = 1.0  # seconds between two looks at what busy actors emitted
PATIENCE = 900.0  # seconds until a first actor has started; a growing cluster takes minutes


def run_jobs(
    jobs: Sequence[J],
    work: Work[J],
    workers: int,
    on_event: Callable[[JobEvent[J]], None],
    may_start: Callable[[], bool] = lambda: True,
    address: str | None = None,
    gpus: float = 0.0,
) -> list[J]:
    """Run jobs on a cluster, `workers` at a time or as many as fit; see `Executor`."""
    ray = ray_module()
    with _connected(ray, address, workers):
        pool = _ActorPool(ray, ray.put(work), workers or _room(ray, gpus), gpus, deque(jobs))
        try:
            while pool.waiting or pool.busy:
                if may_start():
                    pool.start_actors()
                    pool.assign()
                elif not pool.busy:
                    break
                for event in pool.events():
                    on_event(event)
            return list(pool.waiting)
        finally:
            pool.close()


class _Actor(Generic[J]):
    """The remote side of a worker; Ray calls `run` and `emitted` in different threads."""

    def __init__(self, work: Work[J]) -> None:
        self._work, self._values = work, deque[Any]()

    def run(self, job: J) -> tuple[str, Any, str, list[Any]]:
        return *attempt(self._work, job, self._values.append), self.emitted()

    def emitted(self) -> list[Any]:
        return [self._values.popleft() for _ in range(len(self._values))]


class _ActorPool(Generic[J]):
    """Actors that are starting, idle or busy; starting and busy ones by a Ray reference."""

    def __init__(self, ray: Any, work: Any, workers: int, gpus: float, waiting: deque[J]) -> None:
        self.ray, self.work, self.workers, self.waiting = ray, work, workers, waiting
        self.kind = ray.remote(_Actor).options(
            num_cpus=1, num_gpus=gpus, max_restarts=0, max_concurrency=2
        )
        self.starting: dict[Any, Any] = {}
        self.idle: list[Any] = []
        self.busy: dict[Any, tuple[Any, J]] = {}
        self.deaths, self.failed_starts = Counter[int](), 0
        self._collected = self._progressed = time.monotonic()
        self._demand = f"1 CPU and {gpus:g} GPUs"

    def start_actors(self) -> None:
        """Start as many actors as there is work for; their first answer shows that they live."""
        most = min(self.workers, len(self.waiting) + len(self.busy))
        while len(self.starting) + len(self.idle) + len(self.busy) < most:
            actor = self.kind.remote(self.work)
            self.starting[actor.emitted.remote()] = actor

    def assign(self) -> None:
        """Give waiting jobs to idle actors."""
        while self.waiting and self.idle:
            actor, job = self.idle.pop(), self.waiting.popleft()
            self.busy[actor.run.remote(job)] = actor, job

    def events(self) -> Iterator[JobEvent[J]]:
        """Yield what happened, after at most a second."""
        ready, _ = self.ray.wait([*self.busy, *self.starting], num_returns=1, timeout=_PAUSE)
        self._progressed = time.monotonic() if ready or self.busy else self._progressed
        if time.monotonic() - self._progressed > PATIENCE:
            raise RunError(
                f"no Ray worker started in {PATIENCE:.0f} s; "
                f"each asks for {self._demand}: check that a node has that much"
            )
        for ref in ready:
            if ref in self.starting:
                self._started(ref)
            else:
                yield from self._ended(ref)
        if time.monotonic() - self._collected >= _PAUSE:
            yield from self._emitted()
            self._collected = time.monotonic()

    def close(self) -> None:
        """Kill all actors."""
        busy = [actor for actor, _ in self.busy.values()]
        for actor in [*self.starting.values(), *self.idle, *busy]:
            self._kill(actor)

    def _started(self, ref: Any) -> None:
        actor = self.starting.pop(ref)
        try:
            self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            self._kill(actor)
            self.failed_starts += 1
            if self.failed_starts >= TRIES:
                raise RunError(
                    f"Ray's workers do not start: {_last_line(error)}; "
                    "is seqmix[scale] on every node?"
                ) from error
        else:
            self.idle.append(actor)
            self.failed_starts = 0

    def _ended(self, ref: Any) -> Iterator[JobEvent[J]]:
        actor, job = self.busy.pop(ref)
        try:
            kind, value, trace, emitted = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:  # actor, node or network failed
            self._kill(actor)
            self.deaths[id(job)] += 1
            if self.deaths[id(job)] < TRIES:
                self.waiting.appendleft(job)
            else:
                died = f"its worker died {TRIES} times ({_last_line(error)})"
                yield JobEvent("failed", job, f"{died}; if memory ran out, lower --workers")
            return
        yield from (JobEvent("emitted", job, item) for item in emitted)
        yield JobEvent(kind, job, value, trace)
        if trace:  # an unforeseen error may have spoiled the process
            self._kill(actor)
        else:
            self.idle.append(actor)

    def _emitted(self) -> Iterator[JobEvent[J]]:
        """Yield what busy actors emitted so far."""
        for actor, job in list(self.busy.values()):
            with suppress(self.ray.exceptions.RayError):  # a dead actor is reported when it ends
                values = self.ray.get(actor.emitted.remote(), timeout=_PAUSE)
                yield from [JobEvent("emitted", job, value) for value in values]

    def _kill(self, actor: Any) -> None:
        with suppress(self.ray.exceptions.RayError):
            self.ray.kill(actor)


def _room(ray: Any, gpus: float) -> int:
    """Return how many actors the present nodes can hold."""
    resources = ray.cluster_resources()
    return max(1, int(resources.get("GPU", 0) / gpus if gpus else resources.get("CPU", 1)))


@contextmanager
def _connected(ray: Any, address: str | None, workers: int) -> Iterator[None]:
    """Use the caller's connection, or connect to an address, or start Ray on this machine."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = (
        {"address": address}
        if address
        else {"address": "local", "num_cpus": workers or None, "include_dashboard": False}
    )
    try:
        if address:
            _check_listening(address)
        with _sigterm_kept():
            ray.init(**options, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError) as error:
        where = f"at {address}" if address else "on this machine"
        raise RunError(
            f"Ray does not answer {where} ({_last_line(error)}); "
            "start a cluster with: ray start --head"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if callable(handler) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _check_listening(address: str) -> None:
    """Refuse a host:port where nobody listens; Ray itself would try for over ten minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()


def ray_module() -> Any:
    """Import Ray, or say how to install it."""
    return import_extra("ray", "scale", "the engine ray")
