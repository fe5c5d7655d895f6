"""Login tokens, and where a request carries one: a link, an Authorization header or a cookie."""

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
_REDIRECT_PAGE = (
    '<!doctype html><meta charset="utf-8">'
    '<meta http-equiv="refresh" content="0; url=/"><title>seqmix</title>'
)
_CACHED = 2.0  # seconds for which a valid token is not looked up again


class Tokens:
    """Looks up who has a token. `owner` has one that only this run of the server knows."""

    def __init__(
        self,
        look_up: Callable[[str], Annotator | None],
        owner: tuple[str, Annotator] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_up, self._clock = look_up, clock
        self._owner = (_digest(owner[0]), owner[1]) if owner is not None else None
        # by hash, as the token itself is not kept: when it was looked up, and whose it is
        self._cache: dict[bytes, tuple[float, Annotator]] = {}
        self._were_valid: set[bytes] = set()  # hashes

    def find(self, token: str) -> Annotator | None:
        """Return the annotator with this token; comparing hashes takes the same time for any."""
        if not _TOKEN.fullmatch(token):
            return None
        digest = _digest(token)
        if self._owner is not None and hmac.compare_digest(digest, self._owner[0]):
            return self._owner[1]
        now = self._clock()
        at, annotator = self._cache.get(digest, (-_CACHED, None))
        if annotator is None or now - at >= _CACHED:
            annotator = self._look_up(token)
            self._cache = {d: entry for d, entry in self._cache.items() if now - entry[0] < _CACHED}
            if annotator is not None:
                self._cache[digest] = (now, annotator)
                self._were_valid.add(digest)
        return annotator

    def is_cached(self, token: str) -> bool:
        """Whether `find` does not need the store."""
        digest = _digest(token)
        owner = self._owner is not None and hmac.compare_digest(digest, self._owner[0])
        return owner or self._clock() - self._cache.get(digest, (-_CACHED,))[0] < _CACHED

    def was_valid(self, token: str) -> bool:
        """Whether the token was valid since the server started, if the store does not answer."""
        return _digest(token) in self._were_valid


def request_token(scope: Scope, headers: Headers) -> str:
    """Return the token of the login link, else of the Authorization header, else of the cookie."""
    if scope["path"] == "/login":
        query: bytes = scope["query_string"]
        return parse_qs(query.decode("latin-1")).get("token", [""])[0]
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme:
        return token.strip() if scheme.lower() == "bearer" else ""
    cookies = cookie_parser(headers.get("cookie", ""))
    return next((cookies[name] for name in (_cookie(headers), COOKIE) if name in cookies), "")


def _cookie(headers: Headers) -> str:
    """Return the name of the cookie; the port is in it, as browsers share cookies between ports."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}-{port}" if port.isdecimal() else COOKIE


def login(scope: Scope, headers: Headers) -> Response:
    """Return the response to a valid login link: the cookie, and a redirect to the page.

    After a click on another site (webmail, a chat) browsers withhold a strict cookie from a
    redirect, since the other site started it; a page that reloads itself starts a new navigation.
    """
    site = headers.get(
        "sec-fetch-site", "none" if "text/html" not in headers.get("accept", "") else "unknown"
    )
    response = (
        Response(status_code=303, headers={"Location": "/"})
        if site in ("none", "same-origin")
        else Response(_REDIRECT_PAGE, media_type="text/html")
    )
    response.headers["Cache-Control"] = "no-store"
    response.set_cookie(
        _cookie(headers),
        request_token(scope, headers),
        _COOKIE_AGE,
        httponly=True,
        samesite="strict",
        secure=scope.get("scheme") == "https",
    )
    return response


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
