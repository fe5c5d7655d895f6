"""The HTTP server of all applications, which strangers cannot exhaust.

The headers of a request must arrive within a few seconds. The number of connections stays below
what file descriptors allow: when there are too many, the one that has waited longest without a
complete request is closed, or else an idle one. What is not HTTP gets one constant response, and
the same trouble is logged once a minute.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from seqmix.errors import ConfigError

_PATIENCE = 10.0  # seconds for the headers of a request
MOST_CONNECTIONS = 1000
BACKLOG = 128  # connections accepted at once: for a moment there may be this many too many
_QUIET = 60.0  # seconds in which the same trouble is not logged again
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NO_HTTP = json.dumps({"error": "this is not a valid HTTP request"}).encode()
_HEADERS = [
    (b"Content-Type", b"application/json"),
    (b"Content-Length", str(len(_NO_HTTP)).encode()),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Content-Security-Policy", b"default-src 'none'"),
    (b"Connection", b"close"),
]
_log = logging.getLogger("seqmix.serve")


@dataclass
class Connections:
    """The connections of a server, in the order in which they are closed if there are too many."""

    most: int
    patience: float = _PATIENCE
    waiting: dict[Connection, None] = field(default_factory=dict)  # request incomplete
    idle: dict[Connection, None] = field(default_factory=dict)  # between two requests


class Connection(H11Protocol):
    """A connection with a time limit on headers."""

    peers: ClassVar[Connections]
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept it, and close another connection if there are too many."""
        super().connection_made(transport)
        self.peers.waiting[self] = None
        self._wait()
        if len(self.connections) > self.peers.most:
            waiting, idle = self.peers.waiting, self.peers.idle
            oldest = next(iter(waiting)) if len(waiting) > 1 else next(iter(idle), self)
            oldest._leave()
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; the time limit for headers starts with its first byte."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait()
        else:
            self._leave()

    def on_response_complete(self) -> None:
        """Wait for the next request, or close if the body was not read: it could be endless."""
        super().on_response_complete()
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY:
            self.transport.close()
        elif self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.peers.idle[self] = None

    def send_400_response(self, msg: str) -> None:
        """Respond to what is not HTTP."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application is in the middle of this request
            self.cycle.message_event.set()
        with suppress(h11.LocalProtocolError):  # a response has begun
            self.transport.write(
                self.conn.send(
                    h11.Response(status_code=400, headers=_HEADERS, reason=b"Bad Request")
                )
                or b""
            )
            self.transport.write(self.conn.send(h11.Data(data=_NO_HTTP)) or b"")
        self.transport.close()

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.peers.patience, self.transport.close)

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.peers.waiting.pop(self, None)
        self.peers.idle.pop(self, None)


class Server(uvicorn.Server):
    """uvicorn's server, which logs the same trouble once a minute.

    When it stops, it first serves the connections there are for `drain` seconds: a request may
    be on its way on each, and the response tells the client to close it.
    """

    drain = 0.0

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped."""
        asyncio.get_running_loop().set_exception_handler(QuietHandler())
        await super().serve(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: no more connections, then no more requests, then no more responses."""
        if self.drain:
            self.server_state.default_headers.append((b"connection", b"close"))
            for listening in self.servers:
                listening.close()
            end = time.monotonic() + self.drain
            while self.server_state.connections and time.monotonic() < end and not self.force_exit:
                await asyncio.sleep(0.02)
        await super().shutdown(sockets)


class QuietHandler:
    """Logs errors of the event loop: without descriptors, asyncio reports thousands per second."""

    def __init__(self) -> None:
        self._logged: dict[tuple[str, type], float] = {}

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error, unless it was logged a moment ago."""
        error, now = context.get("exception"), time.monotonic()
        key = (str(context.get("message")), type(error))
        if now - self._logged.get(key, -_QUIET) < _QUIET:
            return
        self._logged[key] = now
        if isinstance(error, OSError) and error.errno in _FULL:
            _log.error("no more connections can be accepted at the moment: %s", error.strerror)
        else:
            loop.default_exception_handler(context)


def server(
    app: ASGIApp, grace: int, connections: Connections | None = None, drain: float = 0.0
) -> Server:
    """Return a server for an application; after a stop, requests have `grace` seconds to end."""
    most = min(MOST_CONNECTIONS, max(16, open_file_limit() // 2))
    peers = connections or Connections(most)
    protocol = type("_Connection", (Connection,), {"peers": peers})
    running = Server(
        uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            log_level="error",
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=grace,
        )
    )
    running.drain = drain
    return running


@contextmanager
def until_stopped() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the block, which is no error."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    # uvicorn ends gracefully, then raises the signal again for this handler
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def open_file_limit() -> int:
    """Raise the limit on open files as far as the system allows, and return it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else soft


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket that listens, so that a port in use is reported before anything starts."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"--port must be 1 to 65535, or 0 for any that is free; got {port}")
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError):
        raise ConfigError(
            f"--host must be an address of this machine, such as 127.0.0.1; got {host!r}"
        ) from None
    # without proto, asyncio leaves Nagle on, which costs 40 ms per answer
    with socket.socket(family, kind, proto) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(128)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host} port {port}: {error.strerror}; give another --port"
            ) from error
        yield listener


def link_host(host: str) -> str:
    """Return the host of a link as people can type it."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
