"""seqmix as Label Studio's ML backend: the HTTP side.

    GET /health · GET / · POST /setup · POST /predict · POST /webhook · POST /train · GET /versions

Errors are {"error": "one sentence"}: 401 without the password, 403 from a browser, 413 too large, 415 no JSON, 422 not what was expected,
409 another project's, 421 under a name that is not this machine's. The work is done in threads and in a process of its own, so that
/health and /webhook, which Label Studio gives one second, always answer at once.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from seqmix.data.formats.records import MAX_DEPTH, is_deep
from seqmix.errors import RunError, SeqMixError
from seqmix.serve.labelstudio.protocol import Backend
from seqmix.serve.labelstudio.tasks import Json
from seqmix.serve.web.security import Hosts

BODY = (
    64 * 1024 * 1024
)  # bytes: Label Studio sends all tasks at once when predictions are retrieved
PATIENCE = 60.0  # seconds a body may take to arrive


@dataclass(frozen=True)
class Password:
    """The user and password Label Studio logs in with (basic authentication); its webhooks may send the password as a bearer token."""

    user: str
    password: str

    def admits(self, header: str) -> bool:
        """Whether an Authorization header is right; hashes are compared, so timing tells nothing."""
        scheme, _, given = header.partition(" ")
        if scheme.lower() == "bearer":
            return _same(given.strip(), self.password)
        if scheme.lower() != "basic":
            return False
        try:
            pair = base64.b64decode(given.strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            return False
        return _same(pair, f"{self.user}:{self.password}")


def create_app(backend: Backend, password: Password | None = None, body: int = BODY) -> FastAPI:
    """The application; it starts the backend's worker and stops it when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(backend.worker.start)
        yield
        await run_in_threadpool(backend.worker.close)

    app = FastAPI(
        title="seqmix", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.add_middleware(_Door, password=password)

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
    get("/versions", lambda: {"versions": [backend.rounds.version()]})
    post("/setup", backend.setup)
    post("/predict", backend.predict)
    post("/webhook", backend.webhook)
    post("/train", backend.train)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        said = {
            404: "there is nothing here; Label Studio asks /health, /setup, /predict and /webhook",
            405: "not with this method",
        }
        why = (
            said.get(error.status_code, error.detail)
            if error.detail in ("Not Found", "Method Not Allowed")
            else error.detail
        )
        return JSONResponse({"error": why}, error.status_code, headers=dict(error.headers or {}))

    return app


class _Door:
    """Stands in front of everything: without the password the answer is 401, also where there is nothing and to what cannot be done.

    subtle: where no password is set only this machine is served, so a Host that is not its name means that someone's DNS points at us.
    """

    def __init__(self, app: ASGIApp, password: Password | None) -> None:
        self.app, self.password = app, password

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        refused = self._refused(Headers(scope=scope)) if scope["type"] == "http" else None
        return await (refused or self.app)(scope, receive, send)

    def _refused(self, headers: Headers) -> JSONResponse | None:
        if self.password is None and not Hosts(addresses=True).allow(headers.get("host", "")):
            said = "this backend has no password and answers to localhost alone; set one in SEQMIX_PASSWORD"
            return JSONResponse({"error": said}, 421)
        if self.password is not None and not self.password.admits(headers.get("authorization", "")):
            said = "this backend needs its user and password"
            return JSONResponse({"error": said}, 401, {"WWW-Authenticate": 'Basic realm="seqmix"'})
        return None


def _admit(request: Request) -> None:
    if (
        "origin" in request.headers
    ):  # Label Studio's server sends none; a browser always does when another site makes it post
        raise HTTPException(403, "this is for Label Studio's server, not for browsers")


async def _json(request: Request, limit: int) -> Json:
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        raise HTTPException(415, "the body must be JSON, with Content-Type: application/json")
    parts, size = [], 0
    try:
        async with asyncio.timeout(PATIENCE):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    said = f"the body is larger than {limit} bytes; retrieve predictions for fewer tasks at once"
                    raise HTTPException(413, said, {"Connection": "close"})
                parts.append(part)
    except TimeoutError:
        raise HTTPException(
            408, f"the body did not arrive within {PATIENCE:g} seconds", {"Connection": "close"}
        ) from None
    try:
        found = await run_in_threadpool(json.loads, b"".join(parts))
        if await run_in_threadpool(is_deep, found):
            raise HTTPException(400, f"the body is nested deeper than {MAX_DEPTH} levels")
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is no JSON that can be read") from None
    if not isinstance(found, dict):
        raise HTTPException(422, "the body must be a JSON object")
    return found


async def _answer(work: Callable[[Json], Json], body: Json) -> JSONResponse:
    try:
        return JSONResponse(await run_in_threadpool(work, body))
    except SeqMixError as error:
        return JSONResponse({"error": _shown(error)}, 409 if isinstance(error, RunError) else 422)
    except sqlite3.Error as error:
        return JSONResponse({"error": f"the folder cannot be written or read: {error}"}, 503)


def _shown(error: Exception) -> Any:
    return str(error).encode("utf-8", "replace").decode()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(
        sha256(one.encode("utf-8", "replace")).digest(),
        sha256(other.encode("utf-8", "replace")).digest(),
    )
