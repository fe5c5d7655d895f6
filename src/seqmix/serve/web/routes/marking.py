"""Routes for what is done in one go: the same text elsewhere, batches and their undo."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from seqmix.errors import NotFoundError
from seqmix.serve.answers.mark_all import mark_all, marked_here, take_back
from seqmix.serve.answers.same_text import Cause, elsewhere, text_of
from seqmix.serve.store.batches.batches import batch_sizes, last_action, list_batches, read_batch
from seqmix.serve.store.records import Annotator
from seqmix.serve.store.schema import batches
from seqmix.serve.store.store import Store
from seqmix.serve.web.context import Context, User, spans_json
from seqmix.serve.web.requests import MarkAll, SameText
from seqmix.serve.web.responses import reply

_LISTED = 200


def marking_routes(context: Context) -> APIRouter:
    """Return the routes."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.get("/same")
    def same(query: Annotated[SameText, Query()], user: User) -> Response:
        """Return where else the text of a span is: here, and in how many other sentences."""
        text, tokens = text_of(store, _cause(query))
        others = elsewhere(store, user.id, text, _cause(query))
        here = [place for place in text.places(tokens) if place != (query.start, query.end)]
        return reply({"text": " ".join(text.tokens)[:200], "here": here, **asdict(others)})

    @routes.post("/same", status_code=201)
    def mark(body: MarkAll, user: User) -> Response:
        """Mark the text in the user's answers without it, and offer the mark in open sentences."""
        here = [(start, end) for start, end in body.here]
        return reply(asdict(mark_all(store, user.id, _cause(body), here)), 201)

    @routes.get("/batches")
    def newest_batches(user: User) -> Response:
        """Return what was done in one go, the newest first; to all but admins, theirs only."""
        mine = () if user.admin else (batches.c.annotator_id == user.id,)
        listed = list_batches(store, *mine)[:_LISTED]
        sizes = batch_sizes(store, [batch.id for batch in listed])
        return reply([asdict(batch) | {"answers": sizes.get(batch.id, 0)} for batch in listed])

    @routes.post("/batches/{id}/undo")
    def undo(id: Annotated[int, Path(ge=1, le=2**31)], user: User) -> Response:
        """Take back what was done in one go; what was changed since stays."""
        return reply(undone_json(store, id, user))

    return routes


def undone_json(store: Store, batch: int, user: Annotator) -> dict[str, Any]:
    """Take back a batch and return what that did; `last` could be undone next.

    `here` is what it had marked in the sentence that was open then, and may be open again.
    """
    about = read_batch(store, batch)
    if not user.admin and about.annotator_id != user.id:
        raise NotFoundError("batch of yours", batch)
    undone = asdict(take_back(store, batch, user.id))
    here = {"id": about.details.get("sentence_id"), "spans": spans_json(marked_here(store, about))}
    last = last_action(store, user.id)
    return {"id": None, "batch": batch, **undone, "here": here, "last": last}


def _cause(body: SameText) -> Cause:
    return Cause(body.id, body.start, body.end, body.tag, body.ignore_case, body.endings)
