"""Who may use the server, and how much: tokens, Host and Origin, body and rate limits, headers.

A guard is in front of everything, including static files and unknown paths. It checks in this order
and stops at the first failure:

    token 401  ·  Host 421  ·  Origin 403  ·  JSON 415  ·  rate 429  ·  size 413

Without a token every request gets 401. Tokens are never logged: the access log is off and no
message here contains one.
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
from seqmix.serve.web.credentials import Tokens, login, request_token
from seqmix.serve.web.responses import UNREACHABLE, reply

_SAFE = ("GET", "HEAD", "OPTIONS")
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; "
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
NO_TOKEN = "a token is needed: open the link that `seqmix annotate` or `seqmix project` printed"


class Refused(Exception):  # noqa: N818  a refusal is an answer, not a failure
    """The reason why the guard does not let a request through."""

    def __init__(self, status: int, why: str, **headers: str) -> None:
        super().__init__(status, why)
        self.status, self.why, self.headers = (
            status,
            why,
            {name.replace("_", "-"): value for name, value in headers.items()},
        )


@dataclass(frozen=True)
class Limits:
    """How much an annotator may request."""

    body: int = 2 * 1024 * 1024  # bytes of a request
    rate: float = 50.0  # requests per second in the long run
    burst: float = 200.0  # requests at once
    patience: float = 30.0  # seconds a body may take to arrive


@dataclass(frozen=True)
class Hosts:
    """The names of this server; any other Host means that somebody's DNS points here (rebinding).

    Ports are ignored, as an SSH tunnel changes them. Plain addresses are safe where the server
    listens on more than loopback, since rebinding needs a name.
    """

    names: frozenset[str] = frozenset({"127.0.0.1", "localhost", "::1"})
    addresses: bool = False

    @classmethod
    def of(cls, bound: str, more: Iterable[str] = ()) -> Hosts:
        """Return the hosts for a server bound to an address."""
        names = {*cls.names, *(name.lower() for name in more)}
        if bound.lower() in cls.names:
            return cls(frozenset(names))
        machine = socket.gethostname().lower()
        names |= {bound.lower(), machine, f"{machine}.local"}
        return cls(frozenset(names), addresses=True)

    def allow(self, header: str) -> bool:
        """Whether a Host header names this server."""
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
class RateLimiter:
    """A token bucket for each annotator: `burst` requests at once, refilled at `rate`."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    # by annotator: requests left, and when
    _left: dict[int, tuple[float, float]] = field(default_factory=dict, init=False)

    def take(self, annotator_id: int) -> float:
        """Count a request; return 0 if it is allowed, else the seconds to wait."""
        now = self.clock()
        left, at = self._left.get(annotator_id, (self.limits.burst, now))
        left = min(self.limits.burst, left + (now - at) * self.limits.rate)
        self._left[annotator_id] = (left - 1 if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) / self.limits.rate


class SecurityMiddleware:
    """The ASGI application in front of `app`; it puts the annotator into `scope["state"]`."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        hosts: Hosts | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        no_token: str = NO_TOKEN,
    ) -> None:
        self.app, self.tokens, self.no_token = app, tokens, no_token
        self.hosts, self.limits = hosts or Hosts(), limits or Limits()
        self.rates = RateLimiter(self.limits, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or respond with the reason why not."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers, send = Headers(scope=scope), _with_headers(send, scope["path"])
        try:
            annotator = await self._log_in(scope, headers)
            self._check_origin(scope["method"], headers)
            if wait := self.rates.take(annotator.id):
                raise Refused(
                    429, "too many requests; wait a moment", Retry_After=str(max(1, round(wait)))
                )
            if scope["method"] not in _SAFE:
                body = await self._body(headers, receive)
                if body is None:
                    return None  # the client went away
                receive = _replay(body, receive)
        except Refused as refusal:
            if (
                scope["method"] not in _SAFE
                or "content-length" in headers
                or "transfer-encoding" in headers
            ):
                refusal.headers["Connection"] = "close"  # its body may be unread
            response = reply({"error": refusal.why}, refusal.status, refusal.headers)
            return await response(scope, receive, send)
        if scope["path"] == "/login" and scope["method"] == "GET":
            return await login(scope, headers)(scope, receive, send)
        scope.setdefault("state", {})["annotator"] = annotator
        return await self.app(scope, receive, send)

    async def _log_in(self, scope: Scope, headers: Headers) -> Annotator:
        token = request_token(scope, headers)
        find = self.tokens.find
        try:
            if self.tokens.is_cached(token):
                annotator = find(token)
            else:
                annotator = await run_in_threadpool(find, token)
        except StoreError as error:
            if self.tokens.was_valid(token):
                raise Refused(503, UNREACHABLE) from error
            annotator = None  # without the store it may be anybody
        if annotator is None:
            raise Refused(401, self.no_token, WWW_Authenticate="Bearer")
        return annotator

    def _check_origin(self, method: str, headers: Headers) -> None:
        host = headers.get("host", "")
        if not self.hosts.allow(host):
            raise Refused(
                421,
                f"this server does not have the name {host[:100]!r};"
                " use the link it printed, or --allow-host",
            )
        if method in _SAFE:
            return
        origin = headers.get("origin")
        elsewhere = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        if elsewhere or (origin is not None and origin.partition("://")[2] != host):
            raise Refused(
                403,
                "this request comes from another site, whose pages may not use this server",
            )
        if (
            method == "POST"
            and headers.get("content-type", "").partition(";")[0].strip().lower()
            != "application/json"
        ):
            raise Refused(415, "the body must be JSON, with Content-Type: application/json")

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """Return the body, or None if the client is gone; read no more than 8 times the limit."""
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
                    # a client gets the response only after its body is read, so some of it is read
                    if size > 8 * limit:
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


def _with_headers(send: Send, path: str) -> Send:
    """Return `send` with the security headers added to every response."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault(
                "Cache-Control", "no-store" if path.startswith("/api") else "no-cache"
            )
        await send(message)

    return send_with_headers


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields a body that was read already."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
