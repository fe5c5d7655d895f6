"""Routes for comments and flags."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from seqmix.errors import NotFoundError
from seqmix.serve.answers.comments import (
    Comment,
    add_comment,
    find_comment,
    list_comments,
    resolve_comment,
)
from seqmix.serve.store.records import Annotator
from seqmix.serve.web.context import Context, User, is_blind
from seqmix.serve.web.requests import NewComment, Resolved
from seqmix.serve.web.responses import reply


def comment_routes(context: Context) -> APIRouter:
    """Return the routes; who gives second answers reads their own comments only."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.post("/comments", status_code=201)
    def add(body: NewComment, user: User) -> Response:
        """Comment on a sentence, or flag it with an empty text."""
        return reply(comment_json(add_comment(store, user.id, body.id, body.text), user), 201)

    @routes.post("/comments/{number}/resolved")
    def resolve(
        number: Annotated[int, Path(ge=1, le=2**31)], body: Resolved, user: User
    ) -> Response:
        """Note that a comment is dealt with, or that it is not."""
        if is_blind(context, user) and find_comment(store, number).annotator_id != user.id:
            raise NotFoundError("comment", number)
        resolve_comment(store, number, user.id, body.resolved)
        return reply({"id": number, "resolved": body.resolved})

    @routes.get("/comments/{id:path}")
    def comments(id: str, user: User) -> Response:
        """Return all comments on a sentence, resolved ones too."""
        reader = user.id if is_blind(context, user) else None
        listed = list_comments(store, [id], reader, resolved=True)
        return reply([comment_json(comment, user) for comment in listed])

    return routes


def comments_json(context: Context, id: str, user: Annotator) -> list[dict[str, Any]]:
    """Return the comments on a sentence that are not resolved and that somebody may read."""
    reader = user.id if is_blind(context, user) else None
    return [comment_json(comment, user) for comment in list_comments(context.store, [id], reader)]


def comment_json(comment: Comment, user: Annotator) -> dict[str, Any]:
    """Return a comment for the page."""
    return {
        "id": comment.id,
        "text": comment.text,
        "by": comment.annotator,
        "mine": comment.annotator_id == user.id,
        "at": comment.at,
        "resolved": comment.resolved_at is not None,
    }
