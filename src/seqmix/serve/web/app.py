"""The server's application: the JSON interface under /api and the page, behind the guard.

Whatever goes wrong is one sentence, `{"error": …}`: 401 no token · 403 not for you · 404 no such thing · 405 not like that · 409 stale ·
413 too large · 415 no JSON · 422 wrong · 429 too often · 503 the database does not answer.
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
from seqmix.serve.web.context import Site
from seqmix.serve.web.credentials import Keys
from seqmix.serve.web.requests import Error
from seqmix.serve.web.responses import UNREACHABLE, reply
from seqmix.serve.web.routes import annotating as routes_annotating
from seqmix.serve.web.routes import project as routes_project
from seqmix.serve.web.routes import team as routes_team
from seqmix.serve.web.security import Guard, Hosts, Limits

PAGE = Path(__file__).parent / "page"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_TOLD = {404: "there is nothing here", 405: "this cannot be done here; look at /openapi.json"}
_STATUS = {NotFoundError: 404, StaleError: 409, DataError: 422, StoreError: 503}
_log = logging.getLogger("seqmix.serve")


def create_app(
    project: Project,
    own: tuple[str, Annotator] | None = None,
    hosts: Hosts | None = None,
    limits: Limits | None = None,
    trainer: Callable[[], str | None] = lambda: None,
    page: Path = PAGE,
) -> Guard:
    """The application for one project.

    `own` is a token of this start of the server and whom it stands for; `trainer` says in words what keeps the trainer from running.
    """
    site = Site(project, Estimates(project.store), GroupCommit(project.store), trainer)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        site.turns.close()

    app = FastAPI(
        title="seqmix",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={
            status: {"model": Error}
            for status in (400, 401, 403, 404, 409, 413, 415, 421, 422, 429)
        },
    )
    app.include_router(routes_annotating.router(site))
    app.include_router(routes_project.router(site))
    app.include_router(routes_team.router(site))
    _serve_page(app, page)
    app.add_exception_handler(RequestValidationError, _wrong)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _broken)
    for kind in _STATUS:
        app.add_exception_handler(kind, _told)
    return Guard(
        app, Keys(lambda token: annotator_by_token(project.store, token), own), hosts, limits
    )


def _serve_page(app: FastAPI, folder: Path) -> None:
    """The files of the page, read once. Only these names exist: there is no path to walk out of, and no folder to list."""
    for file in sorted(folder.iterdir()) if folder.is_dir() else []:
        if file.suffix in _KINDS and file.is_file():
            answer = _file(file.read_bytes(), _KINDS[file.suffix])
            for path in (f"/{file.name}", *(("/",) if file.name == "index.html" else ())):
                app.add_api_route(path, answer, include_in_schema=False)


def _file(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def answer() -> Response:
        return Response(content, headers={"Content-Type": kind})

    return answer


async def _wrong(request: Request, error: Exception) -> Response:
    """The first thing that is wrong with a body, with its place. subtle: what was sent is not repeated; it may be anything."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))[
        :100
    ]
    message = "the body is no JSON" if first["type"] == "json_invalid" else str(first["msg"])
    return reply(
        {"error": f"{place}: {message}" if place and first["type"] != "json_invalid" else message},
        422,
    )


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return reply(
        {"error": _TOLD.get(error.status_code, str(error.detail))}, error.status_code, error.headers
    )


async def _told(request: Request, error: Exception) -> Response:
    """An error of our own: it is one sentence already. What the database says is for the log alone."""
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    if status == 503:
        _log.error("%s", error)
    return reply({"error": UNREACHABLE if status == 503 else str(error)}, status)


async def _broken(request: Request, error: Exception) -> Response:
    """A mistake of ours. Starlette logs it; the client learns nothing of it."""
    return reply({"error": "the server made a mistake; what was saved before is safe"}, 500)
