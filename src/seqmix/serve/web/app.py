"""The web application: the JSON interface under /api and the page, behind the guard.

Every error is one sentence, `{"error": …}`: 401 no token · 403 not allowed · 404 not found ·
405 wrong method · 409 stale · 413 too large · 415 not JSON · 422 invalid · 429 too often ·
503 no database.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from seqmix.errors import DataError, NotFoundError, StaleError, StoreError
from seqmix.serve.estimates import Estimates
from seqmix.serve.project import Project
from seqmix.serve.store.annotators import annotator_by_token
from seqmix.serve.store.group_commit import GroupCommit
from seqmix.serve.store.records import Annotator
from seqmix.serve.web.context import Context
from seqmix.serve.web.credentials import Tokens
from seqmix.serve.web.requests import Error
from seqmix.serve.web.responses import UNREACHABLE, reply
from seqmix.serve.web.routes.annotating import annotating_routes
from seqmix.serve.web.routes.project import project_routes
from seqmix.serve.web.routes.team import team_routes
from seqmix.serve.web.security import Guard, Hosts, Limits

PAGE = Path(__file__).parent / "page"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_MESSAGES = {
    404: "there is nothing here",
    405: "this address does not take this method; see /openapi.json",
}
_STATUS = {NotFoundError: 404, StaleError: 409, DataError: 422, StoreError: 503}
_log = logging.getLogger("seqmix.serve")


def create_app(
    project: Project,
    owner: tuple[str, Annotator] | None = None,
    hosts: Hosts | None = None,
    limits: Limits | None = None,
    trainer: Callable[[], str | None] = lambda: None,
    page: Path = PAGE,
) -> Guard:
    """Return the application for a project.

    `owner` is a token that is valid for this run of the server, and whom it logs in; `trainer` says
    why the trainer does not run.
    """
    context = Context(project, Estimates(project.store), GroupCommit(project.store), trainer)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        context.writer.close()

    app = FastAPI(
        title="seqmix",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={
            status: {"model": Error}
            for status in (400, 401, 403, 404, 409, 413, 415, 421, 422, 429)
        },
    )
    for routes in (annotating_routes, project_routes, team_routes):
        app.include_router(routes(context))
    _serve_page(app, page)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)
    for kind in _STATUS:
        app.add_exception_handler(kind, _known_error)
    return Guard(
        app, Tokens(lambda token: annotator_by_token(project.store, token), owner), hosts, limits
    )


def _serve_page(app: FastAPI, folder: Path) -> None:
    """Serve the files of the page from memory, so that no other path can be reached or listed."""
    for file in sorted(folder.iterdir()) if folder.is_dir() else []:
        if file.suffix in _MEDIA_TYPES and file.is_file():
            endpoint = _file(file.read_bytes(), _MEDIA_TYPES[file.suffix])
            for path in (f"/{file.name}", *(("/",) if file.name == "index.html" else ())):
                app.add_api_route(path, endpoint, include_in_schema=False)


def _file(content: bytes, media_type: str) -> Callable[[], Awaitable[Response]]:
    async def endpoint() -> Response:
        return Response(content, headers={"Content-Type": media_type})

    return endpoint


async def _invalid(request: Request, error: Exception) -> Response:
    """Name the first invalid value and its place, without repeating it: it may be anything."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))[
        :100
    ]
    message = "the body is not JSON" if first["type"] == "json_invalid" else str(first["msg"])
    return reply(
        {"error": f"{place}: {message}" if place and first["type"] != "json_invalid" else message},
        422,
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return reply(
        {"error": _MESSAGES.get(error.status_code, str(error.detail))},
        error.status_code,
        error.headers,
    )


async def _known_error(request: Request, error: Exception) -> Response:
    """Return the message of an error of seqmix; what the database reports goes to the log only."""
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    if status == 503:
        _log.error("%s", error)
    return reply({"error": UNREACHABLE if status == 503 else str(error)}, status)


async def _unexpected(request: Request, error: Exception) -> Response:
    """Hide an unexpected error, which Starlette logs, from the client."""
    return reply({"error": "the server has a bug here; what was saved before is safe"}, 500)
