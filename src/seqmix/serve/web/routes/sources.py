"""Routes for the sources of suggestions: list, add, turn on and off, remove."""

from __future__ import annotations

from fastapi import APIRouter, Response

from seqmix.serve.sources.adding import add_dictionary
from seqmix.serve.sources.records import enable_source, remove_source
from seqmix.serve.sources.terms import parse_terms
from seqmix.serve.web.context import Admin, Context, User
from seqmix.serve.web.requests import NewSource, SourceState
from seqmix.serve.web.responses import reply


def source_routes(context: Context) -> APIRouter:
    """Return the routes; a source that is added or turned off counts for everybody at once."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.get("/sources")
    def sources(user: User) -> Response:
        """Return the sources with the share of their spans that was kept, and their F1."""
        return reply(context.figures.rows())

    @routes.post("/sources", status_code=201)
    def add(body: NewSource, user: Admin) -> Response:
        """Add a dictionary that was typed in; its regular expressions are tried first."""
        lines = enumerate(body.terms.split("\n"), 1)
        terms = parse_terms(lines, store.read_tags(), body.ignore_case)
        source = add_dictionary(store, body.name.strip(), terms)
        context.figures.forget()
        return reply({"name": source.name}, 201)

    @routes.post("/sources/{name:path}/state")
    def turn(name: str, body: SourceState, user: Admin) -> Response:
        """Turn a source on or off for everybody."""
        enable_source(store, name, body.on)
        context.figures.forget()
        return reply({"name": name, "on": body.on})

    @routes.post("/sources/{name:path}/remove")
    def remove(name: str, user: Admin) -> Response:
        """Remove a source."""
        remove_source(store, name)
        context.figures.forget()
        return reply({"name": name})

    return routes
