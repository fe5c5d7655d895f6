"""Whom a token belongs to, and how a request carries one: a login link, an Authorization header or a cookie."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable
from hashlib import sha256
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import Scope

from seqmix.serve.store.records import Annotator

COOKIE = "seqmix"
_COOKIE_AGE = 30 * 24 * 3600
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
_ONWARD = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>seqmix</title>'
_KEPT = 2.0  # seconds for which a known token is not looked up again


class Keys:
    """Whom a token belongs to. The store keeps hashes only; `own` is the token of this start of the server, kept in memory alone."""

    def __init__(
        self,
        look_up: Callable[[str], Annotator | None],
        own: tuple[str, Annotator] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_up, self._clock = look_up, clock
        self._own = (_digest(own[0]), own[1]) if own is not None else None
        self._known: dict[
            bytes, tuple[float, Annotator]
        ] = {}  # by hash: the token itself is not kept
        self._good: set[bytes] = set()  # hashes of tokens that were good once

    def find(self, token: str) -> Annotator | None:
        """The annotator with this token. subtle: hashes are compared, in constant time, so timing tells nothing about a token."""
        if not _TOKEN.fullmatch(token):
            return None
        digest = _digest(token)
        if self._own is not None and hmac.compare_digest(digest, self._own[0]):
            return self._own[1]
        now = self._clock()
        at, person = self._known.get(digest, (-_KEPT, None))
        if person is None or now - at >= _KEPT:
            person = self._look_up(token)
            self._known = {
                key: value for key, value in self._known.items() if now - value[0] < _KEPT
            }
            if person is not None:
                self._known[digest] = (now, person)
                self._good.add(digest)
        return person

    def remembers(self, token: str) -> bool:
        """Whether `find` needs no look into the store."""
        digest = _digest(token)
        own = self._own is not None and hmac.compare_digest(digest, self._own[0])
        return own or self._clock() - self._known.get(digest, (-_KEPT,))[0] < _KEPT

    def knew(self, token: str) -> bool:
        """Whether the token was good once since the server started: who has such a one is no stranger when the store does not answer."""
        return _digest(token) in self._good


def given_token(scope: Scope, headers: Headers) -> str:
    """The token of a request: of the login link, else of the Authorization header, else of the cookie."""
    if scope["path"] == "/login":
        asked: bytes = scope["query_string"]
        return parse_qs(asked.decode("latin-1")).get("token", [""])[0]
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme:
        return token.strip() if scheme.lower() == "bearer" else ""
    cookies = cookie_parser(headers.get("cookie", ""))
    return next((cookies[name] for name in (_cookie(headers), COOKIE) if name in cookies), "")


def _cookie(headers: Headers) -> str:
    """The cookie's name. subtle: browsers share cookies between ports, so without the port two projects would log each other out."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}-{port}" if port.isdecimal() else COOKIE


def login(scope: Scope, headers: Headers) -> Response:
    """The answer to a good login link: the cookie, and on to the page.

    subtle: after a click on another site (webmail, a chat) the browser holds back a strict cookie on a redirect, for the other site began
    it. A page that goes on by itself begins anew.
    """
    here = headers.get(
        "sec-fetch-site", "none" if "text/html" not in headers.get("accept", "") else "unknown"
    )
    answer = (
        Response(status_code=303, headers={"Location": "/"})
        if here in ("none", "same-origin")
        else Response(_ONWARD, media_type="text/html")
    )
    answer.headers["Cache-Control"] = "no-store"
    answer.set_cookie(
        _cookie(headers),
        given_token(scope, headers),
        _COOKIE_AGE,
        httponly=True,
        samesite="strict",
        secure=scope.get("scheme") == "https",
    )
    return answer


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
