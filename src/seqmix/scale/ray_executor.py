"""The same work on a Ray cluster: actors that stay, as processes do here, and are replaced when they or their nodes die.

Nodes need this package, and see files (pool, model, run directory) under the same paths. Jobs are handed out one at a time to whoever is
free, and only to an actor that has started, so a cluster that is smaller than asked for, or shrinks, is slower and nothing else.
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

from seqmix.data.formats.base import extra
from seqmix.errors import RunError
from seqmix.scale.local_executor import Event, Work, outcome

J = TypeVar("J")
AS_MANY_AS_FIT = 0  # workers
_TRIES = 4  # for a job whose actor dies, and for actors that die before they have a job; nodes of a cluster come and go
_PAUSE = 1.0  # seconds between two looks at what busy actors tell
_PATIENCE = (
    900.0  # seconds until a first actor has started; a cluster that grows by itself takes minutes
)


def work_through(
    jobs: Sequence[J],
    work: Work[J],
    workers: int,
    hear: Callable[[Event[J]], None],
    may_start: Callable[[], bool] = lambda: True,
    address: str | None = None,
    gpus: float = 0.0,
) -> list[J]:
    """Do the jobs in order, `workers` at a time or as many as fit; those not started because `may_start` said no are returned."""
    ray = ray_module()
    with _connected(ray, address, workers):
        crew = _Actors(ray, ray.put(work), workers or _room(ray, gpus), gpus, deque(jobs))
        try:
            while crew.waiting or crew.busy:
                if may_start():
                    crew.hire()
                    crew.hand_out()
                elif not crew.busy:
                    break
                for event in crew.events():
                    hear(event)
            return list(crew.waiting)
        finally:
            crew.dismiss()


class _Hand(Generic[J]):
    """The actor. Ray calls `do` and `news` in threads of their own."""

    def __init__(self, work: Work[J]) -> None:
        self._work, self._told = work, deque[Any]()

    def do(self, job: J) -> tuple[str, Any, str, list[Any]]:
        return *outcome(self._work, job, self._told.append), self.news()

    def news(self) -> list[Any]:
        return [self._told.popleft() for _ in range(len(self._told))]


class _Actors(Generic[J]):
    """Actors by what they are at: starting, idle or busy; what they run for is a reference that Ray fulfills."""

    def __init__(self, ray: Any, work: Any, workers: int, gpus: float, waiting: deque[J]) -> None:
        self.ray, self.work, self.workers, self.waiting = ray, work, workers, waiting
        self.kind = ray.remote(_Hand).options(
            num_cpus=1, num_gpus=gpus, max_restarts=0, max_concurrency=2
        )
        self.starting: dict[Any, Any] = {}
        self.idle: list[Any] = []
        self.busy: dict[Any, tuple[Any, J]] = {}
        self.deaths, self.failed_starts = Counter[int](), 0
        self._looked = self._moved = time.monotonic()
        self._asked = f"1 CPU and {gpus:g} GPUs"

    def hire(self) -> None:
        """As many as there is work for. What an actor says first tells that it lives."""
        while len(self.starting) + len(self.idle) + len(self.busy) < min(
            self.workers, len(self.waiting) + len(self.busy)
        ):
            actor = self.kind.remote(self.work)
            self.starting[actor.news.remote()] = actor

    def hand_out(self) -> None:
        while self.waiting and self.idle:
            actor, job = self.idle.pop(), self.waiting.popleft()
            self.busy[actor.do.remote(job)] = actor, job

    def events(self) -> Iterator[Event[J]]:
        """What happened, after at most a second."""
        ready, _ = self.ray.wait([*self.busy, *self.starting], num_returns=1, timeout=_PAUSE)
        self._moved = time.monotonic() if ready or self.busy else self._moved
        if time.monotonic() - self._moved > _PATIENCE:
            raise RunError(
                f"no Ray worker started in {_PATIENCE:.0f} s; each asks for {self._asked}: has any node so much?"
            )
        for ref in ready:
            if ref in self.starting:
                self._started(ref)
            else:
                yield from self._ended(ref)
        if time.monotonic() - self._looked >= _PAUSE:
            yield from self._news()
            self._looked = time.monotonic()

    def dismiss(self) -> None:
        for actor in [
            *self.starting.values(),
            *self.idle,
            *(actor for actor, _ in self.busy.values()),
        ]:
            self._dismiss(actor)

    def _started(self, ref: Any) -> None:
        actor = self.starting.pop(ref)
        try:
            self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            self._dismiss(actor)
            self.failed_starts += 1
            if self.failed_starts >= _TRIES:
                raise RunError(
                    f"Ray's workers do not start: {_last_line(error)}; is seqmix[scale] on every node?"
                ) from error
        else:
            self.idle.append(actor)
            self.failed_starts = 0

    def _ended(self, ref: Any) -> Iterator[Event[J]]:
        actor, job = self.busy.pop(ref)
        try:
            kind, value, trace, news = self.ray.get(ref)
        except (
            self.ray.exceptions.RayError
        ) as error:  # the actor died, or its node, or the network in between
            self._dismiss(actor)
            self.deaths[id(job)] += 1
            if self.deaths[id(job)] < _TRIES:
                self.waiting.appendleft(job)
            else:
                yield Event(
                    "failed",
                    job,
                    f"its worker died {_TRIES} times ({_last_line(error)}); if memory ran out, lower --workers",
                )
            return
        yield from (Event("told", job, one) for one in news)
        yield Event(kind, job, value, trace)
        if trace:  # as with processes: who knows what the error left behind
            self._dismiss(actor)
        else:
            self.idle.append(actor)

    def _news(self) -> Iterator[Event[J]]:
        """What busy actors tell before they are done."""
        for actor, job in list(self.busy.values()):
            with suppress(
                self.ray.exceptions.RayError
            ):  # if it is dead, the end of its job says so
                yield from [
                    Event("told", job, one)
                    for one in self.ray.get(actor.news.remote(), timeout=_PAUSE)
                ]

    def _dismiss(self, actor: Any) -> None:
        with suppress(self.ray.exceptions.RayError):
            self.ray.kill(actor)


def _room(ray: Any, gpus: float) -> int:
    """How many actors the nodes that are there now can hold."""
    there = ray.cluster_resources()
    return max(1, int(there.get("GPU", 0) / gpus if gpus else there.get("CPU", 1)))


@contextmanager
def _connected(ray: Any, address: str | None, workers: int) -> Iterator[None]:
    """A connection to a cluster: the caller's own, the one at an address, or a new one on this machine that ends with us."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = (
        {"address": address}
        if address
        else {"address": "local", "num_cpus": workers or None, "include_dashboard": False}
    )
    try:
        if address:
            _knock(address)
        with _sigterm_kept():
            ray.init(**own, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError) as error:
        where = f"at {address}" if address else "on this machine"
        raise RunError(
            f"Ray does not answer {where} ({_last_line(error)}); start a cluster with: ray start --head"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Ray makes itself the one to answer a polite kill; whoever was that before stays it."""
    old = signal.getsignal(signal.SIGTERM)
    yield
    if callable(old) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, old)


def _knock(address: str) -> None:
    """Whether anybody listens at host:port. Ray itself would ask for ten minutes and more."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()


def ray_module() -> Any:
    """Ray, if it is there."""
    return extra("ray", "scale", "the engine ray")
