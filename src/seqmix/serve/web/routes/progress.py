"""Routes for what is looked at now and then: how each tag does, and what annotators confuse."""

from __future__ import annotations

from fastapi import APIRouter, Response

from seqmix.serve.progress.by_tag import TagProgress
from seqmix.serve.progress.confusion import confusion
from seqmix.serve.web.context import Admin, Context, User
from seqmix.serve.web.responses import reply


def progress_routes(context: Context) -> APIRouter:
    """Return the routes."""
    routes, tags = APIRouter(prefix="/api"), TagProgress(context.store)

    @routes.get("/tags/progress")
    def by_tag(user: User) -> Response:
        """Return the marks of each tag and the F1 of the newest model on it."""
        return reply({"tags": tags.rows()})

    @routes.get("/confusion")
    def confused(user: Admin) -> Response:
        """Return how annotators agree on each tag, and what one marks and another does not."""
        return reply(confusion(context.store))

    return routes
