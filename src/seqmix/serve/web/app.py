"""The web application: the JSON interface under /api and the page, behind the guard.

Every error is one sentence, `{"error": …}`: 401 no token · 403 not allowed · 404 not found ·
405 wrong method · 409 stale · 413 too large · 415 not JSON · 422 invalid · 429 too often ·
503 no database.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import Response

from seqmix.serve.answers.mark_all import MarkedTexts
from seqmix.serve.progress.estimates import Estimates
from seqmix.serve.progress.pace import Pace
from seqmix.serve.project import Project
from seqmix.serve.sources.figures import Figures
from seqmix.serve.sources.offers import Sources
from seqmix.serve.store.annotators import annotator_by_token
from seqmix.serve.store.group_commit import GroupCommit
from seqmix.serve.store.records import Annotator
from seqmix.serve.web.context import Context
from seqmix.serve.web.credentials import Tokens
from seqmix.serve.web.errors import add_error_handlers, error_responses
from seqmix.serve.web.routes.annotating import annotating_routes
from seqmix.serve.web.routes.answers import answer_routes
from seqmix.serve.web.routes.bulk import bulk_routes
from seqmix.serve.web.routes.comments import comment_routes
from seqmix.serve.web.routes.endpoints import endpoint_routes
from seqmix.serve.web.routes.marking import marking_routes
from seqmix.serve.web.routes.progress import progress_routes
from seqmix.serve.web.routes.project import project_routes
from seqmix.serve.web.routes.review import review_routes
from seqmix.serve.web.routes.sources import source_routes
from seqmix.serve.web.routes.tags import tag_routes
from seqmix.serve.web.routes.team import team_routes
from seqmix.serve.web.security import Hosts, Limits, SecurityMiddleware

PAGE = Path(__file__).parent / "page"
_ROUTES = (
    annotating_routes,
    answer_routes,
    endpoint_routes,
    comment_routes,
    bulk_routes,
    marking_routes,
    progress_routes,
    project_routes,
    review_routes,
    source_routes,
    tag_routes,
    team_routes,
)
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def create_app(
    project: Project,
    owner: tuple[str, Annotator] | None = None,
    hosts: Hosts | None = None,
    limits: Limits | None = None,
    trainer: Callable[[], str | None] = lambda: None,
    page: Path = PAGE,
) -> SecurityMiddleware:
    """Return the application for a project.

    `owner` is a token that is valid for this run of the server, and whom it logs in; `trainer` says
    why the trainer does not run.
    """
    store, sources = project.store, Sources(project.store)
    figures = Figures(store, sources)
    writer, marked = GroupCommit(store), MarkedTexts(store)
    estimates, pace = Estimates(store), Pace(store)
    context = Context(project, estimates, writer, sources, figures, pace, marked, trainer)

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
        responses=error_responses(400, 401, 403, 404, 409, 413, 415, 421, 422, 429),
    )
    for routes in _ROUTES:
        app.include_router(routes(context))
    _serve_page(app, page)
    add_error_handlers(app)
    return SecurityMiddleware(
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
