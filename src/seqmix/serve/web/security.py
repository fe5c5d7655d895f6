"""Who may talk to the server, and how much: tokens, Host and Origin, body and rate limits, headers.

One guard stands in front of everything, static files and unknown paths included. It asks in this order, and the first "no" ends it:

    a token?  401  ·  our own Host?  421  ·  our own Origin?  403  ·  JSON?  415  ·  not too often?  429  ·  not too much?  413

A stranger learns nothing but 401, whatever is asked. Tokens are never logged: the access log is off and no message here holds one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seqmix.errors import StoreError
from seqmix.serve.store.records import Annotator
from seqmix.serve.web.credentials import Keys, given_token, login
from seqmix.serve.web.responses import UNREACHABLE, reply

_SAFE = ("GET", "HEAD", "OPTIONS")
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
}
NO_TOKEN = (
    "a token is needed: open the link that `seqmix annotate` or `seqmix project --add` printed"
)


class Refused(Exception):  # noqa: N818  a refusal is an answer, not a failure
    """The guard says no, in one sentence."""

    def __init__(self, status: int, why: str, **headers: str) -> None:
        super().__init__(status, why)
        self.status, self.why, self.headers = (
            status,
            why,
            {name.replace("_", "-"): value for name, value in headers.items()},
        )


@dataclass(frozen=True)
class Limits:
    """How much one annotator may ask for."""

    body: int = 2 * 1024 * 1024  # bytes of a request
    rate: float = 50.0  # requests a second, in the long run
    burst: float = 200.0  # … and at once
    patience: float = 30.0  # seconds a body may take to arrive


@dataclass(frozen=True)
class Hosts:
    """The names this server goes by. Any other Host means that someone's DNS points at us (rebinding).

    A port is not looked at: it is another one behind an SSH tunnel. Bare addresses are safe where we listen on more than loopback,
    since rebinding needs a name.
    """

    names: frozenset[str] = frozenset({"127.0.0.1", "localhost", "::1"})
    addresses: bool = False

    @classmethod
    def of(cls, bound: str, more: Iterable[str] = ()) -> Hosts:
        """The hosts for a server bound to an address."""
        known = {*cls.names, *(name.lower() for name in more)}
        if bound.lower() in cls.names:
            return cls(frozenset(known))
        own = socket.gethostname().lower()
        return cls(frozenset({*known, bound.lower(), own, f"{own}.local"}), addresses=True)

    def allow(self, header: str) -> bool:
        """Whether a Host header names us."""
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        if name in self.names:
            return True
        try:
            return self.addresses and bool(ipaddress.ip_address(name))
        except ValueError:
            return False


@dataclass
class Buckets:
    """A token bucket a person: `burst` requests at once, refilled at `rate`."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _left: dict[int, tuple[float, float]] = field(
        default_factory=dict, init=False
    )  # by person: (requests left, when)

    def take(self, person: int) -> float:
        """0 when one more is fine, else the seconds to wait."""
        now = self.clock()
        left, at = self._left.get(person, (self.limits.burst, now))
        left = min(self.limits.burst, left + (now - at) * self.limits.rate)
        self._left[person] = (left - 1 if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) / self.limits.rate


class Guard:
    """The ASGI application that stands in front of `app`. Those it lets in are in `scope["state"]["annotator"]`."""

    def __init__(
        self,
        app: ASGIApp,
        keys: Keys,
        hosts: Hosts | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app, self.keys, self.hosts, self.limits = (
            app,
            keys,
            hosts or Hosts(),
            limits or Limits(),
        )
        self.buckets = Buckets(self.limits, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with the reason why not."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers, send = Headers(scope=scope), _dressed(send, scope["path"])
        try:
            person = await self._person(scope, headers)
            self._place(scope["method"], headers)
            if wait := self.buckets.take(person.id):
                raise Refused(
                    429, "too many requests; wait a moment", Retry_After=str(max(1, round(wait)))
                )
            if scope["method"] not in _SAFE:
                body = await self._body(headers, receive)
                if body is None:
                    return None  # the client went away
                receive = _replayed(body, receive)
        except Refused as no:
            if (
                scope["method"] not in _SAFE
                or "content-length" in headers
                or "transfer-encoding" in headers
            ):
                no.headers["Connection"] = "close"  # a body may be on its way that nobody will read
            return await reply({"error": no.why}, no.status, no.headers)(scope, receive, send)
        if scope["path"] == "/login" and scope["method"] == "GET":
            return await login(scope, headers)(scope, receive, send)
        scope.setdefault("state", {})["annotator"] = person
        return await self.app(scope, receive, send)

    async def _person(self, scope: Scope, headers: Headers) -> Annotator:
        token = given_token(scope, headers)
        find = self.keys.find
        try:
            person = (
                find(token) if self.keys.remembers(token) else await run_in_threadpool(find, token)
            )
        except StoreError as error:
            if self.keys.knew(token):
                raise Refused(503, UNREACHABLE) from error
            person = None  # a stranger, or somebody we cannot tell from one
        if person is None:
            raise Refused(401, NO_TOKEN, WWW_Authenticate="Bearer")
        return person

    def _place(self, method: str, headers: Headers) -> None:
        host = headers.get("host", "")
        if not self.hosts.allow(host):
            raise Refused(
                421,
                f"this server does not go by the name {host[:100]!r}; use the link it printed, or give --allow-host",
            )
        if method in _SAFE:
            return
        origin = headers.get("origin")
        elsewhere = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        if elsewhere or (origin is not None and origin.partition("://")[2] != host):
            raise Refused(
                403,
                "this request comes from another site; only the page of this server may change anything",
            )
        if (
            method == "POST"
            and headers.get("content-type", "").partition(";")[0].strip().lower()
            != "application/json"
        ):
            raise Refused(415, "the body must be JSON, with Content-Type: application/json")

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body, read up to the limit whatever Content-Length says; None when the client is gone."""
        limit, parts, size = self.limits.body, [], 0
        too_large = Refused(413, f"the body is larger than {limit} bytes")
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or len(declared) > 15 or int(declared) > 8 * limit:
            raise too_large
        try:
            async with asyncio.timeout(self.limits.patience):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= limit:
                        parts.append(part)
                    if (
                        size > 8 * limit
                    ):  # a client hears the answer only if its body is read; some of it is, not any amount
                        raise too_large
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            raise Refused(
                408, f"the body did not arrive within {self.limits.patience:g} seconds"
            ) from None
        if size > limit:
            raise too_large
        return b"".join(parts)


def _dressed(send: Send, path: str) -> Send:
    """Every answer leaves with the security headers on."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault(
                "Cache-Control", "no-store" if path.startswith("/api") else "no-cache"
            )
        await send(message)

    return dressed


def _replayed(body: bytes, receive: Receive) -> Receive:
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed
