"""seqmix as Label Studio's ML backend: the HTTP side.

    GET /health · GET / · POST /setup · POST /predict · POST /webhook · POST /train · GET /versions

Errors are {"error": "one sentence"}: 401 without the password, 403 from a browser, 413 too large,
415 not JSON, 422 not what was expected, 409 another project's, 421 under a name that is not this
machine's, 503 when the store does not answer. The work is done in threads and in the trainer's
process, so that /health and /webhook, which Label Studio gives one second, answer at once.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from seqmix.data.formats.records import MAX_DEPTH, is_deep
from seqmix.errors import RunError, SeqMixError, StoreError
from seqmix.serve.labelstudio.protocol import Backend
from seqmix.serve.labelstudio.tasks import Json
from seqmix.serve.web.security import Hosts

BODY = 64 * 1024 * 1024  # bytes: all tasks are sent at once when predictions are retrieved
PATIENCE = 60.0  # seconds a body may take to arrive
_NO_PASSWORD = (
    "this backend has no password and answers to localhost alone; set one in SEQMIX_PASSWORD"
)
_STATUS: dict[type, int] = {RunError: 409, StoreError: 503}
_REASONS = {
    404: "there is nothing here; Label Studio asks /health, /setup, /predict and /webhook",
    405: "this address does not accept this method",
}


@dataclass(frozen=True)
class Password:
    """The user and password Label Studio logs in with; webhooks may send a bearer token instead."""

    user: str
    password: str

    def admits(self, header: str) -> bool:
        """Return whether an Authorization header is right, in a time that tells nothing."""
        scheme, _, credentials = header.partition(" ")
        if scheme.lower() == "bearer":
            return _is_same(credentials.strip(), self.password)
        if scheme.lower() != "basic":
            return False
        try:
            pair = base64.b64decode(credentials.strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            return False
        return _is_same(pair, f"{self.user}:{self.password}")


def create_app(backend: Backend, password: Password | None = None, body: int = BODY) -> FastAPI:
    """Return the application; the backend starts and ends with it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(backend.start)
        yield
        await run_in_threadpool(backend.close)

    app = FastAPI(
        title="seqmix", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.add_middleware(_Gate, password=password)

    def post(path: str, work: Callable[[Json], Json]) -> None:
        async def route(request: Request) -> JSONResponse:
            _admit(request)
            return await _answer(work, await _json(request, body))

        app.add_api_route(path, route, methods=["POST"], response_model=None)

    def get(path: str, work: Callable[[], Json]) -> None:
        async def route(request: Request) -> JSONResponse:
            _admit(request)
            return await _answer(lambda _: work(), {})

        app.add_api_route(path, route, methods=["GET"], response_model=None)

    get("/", backend.health)
    get("/health", backend.health)
    get("/versions", backend.versions)
    post("/setup", backend.setup)
    post("/predict", backend.predict)
    post("/webhook", backend.webhook)
    post("/train", backend.train)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        is_standard = error.detail in ("Not Found", "Method Not Allowed")
        why = _REASONS.get(error.status_code, error.detail) if is_standard else error.detail
        return JSONResponse({"error": why}, error.status_code, headers=dict(error.headers or {}))

    return app


class _Gate:
    """Checks the password before anything else: strangers get 401 on every path.

    Without a password only this machine is served, so a Host that is not its name means that
    someone's DNS points at us.
    """

    def __init__(self, app: ASGIApp, password: Password | None) -> None:
        self.app, self.password = app, password

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        return await (refusal or self.app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        if self.password is None and not Hosts(addresses=True).allow(headers.get("host", "")):
            return JSONResponse({"error": _NO_PASSWORD}, 421)
        if self.password is not None and not self.password.admits(headers.get("authorization", "")):
            why = {"error": "this backend needs its user and password"}
            return JSONResponse(why, 401, {"WWW-Authenticate": 'Basic realm="seqmix"'})
        return None


def _admit(request: Request) -> None:
    # Label Studio's server sends no Origin; a browser does when another site makes it post
    if "origin" in request.headers:
        raise HTTPException(403, "this is for Label Studio's server, not for browsers")


async def _json(request: Request, limit: int) -> Json:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "the body must be JSON, with Content-Type: application/json")
    parts, size, close = [], 0, {"Connection": "close"}
    too_large = f"the body is larger than {limit} bytes; retrieve predictions for fewer tasks"
    try:
        async with asyncio.timeout(PATIENCE):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise HTTPException(413, too_large, close)
                parts.append(part)
    except TimeoutError:
        late = f"the body did not arrive within {PATIENCE:g} seconds"
        raise HTTPException(408, late, close) from None
    try:
        body = await run_in_threadpool(json.loads, b"".join(parts))
        if await run_in_threadpool(is_deep, body):
            raise HTTPException(400, f"the body is nested deeper than {MAX_DEPTH} levels")
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON that can be read") from None
    if not isinstance(body, dict):
        raise HTTPException(422, "the body must be a JSON object")
    return body


async def _answer(work: Callable[[Json], Json], body: Json) -> JSONResponse:
    try:
        return JSONResponse(await run_in_threadpool(work, body))
    except SeqMixError as error:
        status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 422)
        why = str(error).encode("utf-8", "replace").decode()
        return JSONResponse({"error": why}, status)


def _is_same(password: str, expected: str) -> bool:
    a, b = (sha256(text.encode("utf-8", "replace")).digest() for text in (password, expected))
    return hmac.compare_digest(a, b)
