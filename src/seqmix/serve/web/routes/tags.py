"""Routes for the tags: what they are, what they were, and changes with a preview."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from seqmix.serve.store.annotators import list_annotators
from seqmix.serve.store.records import Annotator
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagChange, TagHistory
from seqmix.serve.tags.changes import Wish
from seqmix.serve.tags.in_settings import change_project_tags
from seqmix.serve.tags.looks import list_tags
from seqmix.serve.tags.preview import preview, tag_counts
from seqmix.serve.tags.review import count_open
from seqmix.serve.web.context import Admin, Context, User
from seqmix.serve.web.requests import TagWish, Version
from seqmix.serve.web.responses import reply

_LISTED = 100  # changes, the newest


def tag_routes(context: Context) -> APIRouter:
    """Return the routes; only admins change the tags."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.get("/tags")
    def tags(user: User, since: Annotated[Version | None, Query()] = None) -> Response:
        """Return the tags of now, and what those mean that a page knew after a change."""
        history = store.tag_history()
        current = {"tags": tags_json(store), "newest": history.newest}
        if since is None:
            return reply(current)
        return reply({**current, "meanings": _meanings(store, history, since)})

    @routes.get("/tags/changes")
    def changes(user: Admin) -> Response:
        """Return all changes, the newest first, how many spans have each tag, and what is open."""
        people = {annotator.id: annotator for annotator in list_annotators(store)}
        history = store.tag_history()
        listed = [_change_json(change, history, people) for change in history.changes[::-1]]
        counts = {"spans": tag_counts(store), "open": count_open(store)}
        return reply({"changes": listed[:_LISTED], **counts})

    @routes.post("/tags/preview")
    def look(body: TagWish, user: Admin) -> Response:
        """Return what a change would touch, and the last change as of now."""
        newest = store.tag_history().newest
        touched = preview(store, _wish(body))
        return reply({**asdict(touched), "words": touched.in_words(), "newest": newest})

    @routes.post("/tags", status_code=201)
    def change(body: TagWish, user: Admin) -> Response:
        """Change the tags, if nobody has changed them since `newest`."""
        folder = context.project.folder
        change = change_project_tags(folder, store, _wish(body), user.id, body.newest)
        return reply({"tags": tags_json(store), "newest": change.id}, 201)

    return routes


def tags_json(store: Store) -> list[dict[str, Any]]:
    """Return the tags with their colors and keys."""
    return [
        {"name": look.name, "key": None if look.key is None else str(look.key), "color": look.color}
        for look in list_tags(store)
    ]


def _wish(body: TagWish) -> Wish:
    return Wish(
        body.kind,
        body.tag.strip(),
        tuple(name.strip() for name in body.into),
        body.color,
        body.earlier,
    )


def _meanings(store: Store, history: TagHistory, since: int) -> dict[str, tuple[str, ...]]:
    place = history.at_change(since)
    if place == len(history.changes):
        return {}
    return {tag: history.meanings(tag, place) for tag in history.changes[place].details["tags"]}


def _change_json(
    change: TagChange, history: TagHistory, people: dict[int, Annotator]
) -> dict[str, Any]:
    by = people.get(change.annotator_id) if change.annotator_id is not None else None
    return {
        "id": change.id,
        "kind": change.kind,
        "tag": change.tag,
        "into": change.into,
        "by": None if by is None else by.name,
        "at": change.at,
        "undone": change.id in history.undone,
    }
