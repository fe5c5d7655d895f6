"""Routes for language models as sources: their prompts and limits, and the yes to send text."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Response

from seqmix.serve.settings import change_settings, read_settings
from seqmix.serve.sources.llm.annotator import answered_by_models, take_all_back, weights
from seqmix.serve.sources.llm.asking import read_usage
from seqmix.serve.sources.llm.endpoint import PROMPT, Endpoint
from seqmix.serve.sources.llm.prompt import filled
from seqmix.serve.sources.records import (
    LLM,
    Source,
    add_source,
    change_source,
    find_source,
)
from seqmix.serve.sources.records import read_settings as source_settings
from seqmix.serve.sources.stored import problems
from seqmix.serve.store.queue import coming_ids
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.web.context import Admin, Context
from seqmix.serve.web.requests import Consent, EndpointChange, NewEndpoint
from seqmix.serve.web.responses import reply


def endpoint_routes(context: Context) -> APIRouter:
    """Return the routes, all for admins."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.post("/endpoints", status_code=201)
    def add(body: NewEndpoint, user: Admin) -> Response:
        """Add a language model; nothing is sent to it before somebody says yes."""
        endpoint = Endpoint(body.url.rstrip("/"), body.model)
        source = add_source(store, body.name.strip(), LLM, endpoint.to_json())
        context.figures.forget()
        return reply(_described(context, source), 201)

    @routes.get("/endpoints/{name:path}")
    def show(name: str, user: Admin) -> Response:
        """Return the prompt, the limits, what was used, and what would be sent next."""
        return reply(_described(context, _find(context, name)))

    @routes.post("/endpoints/{name:path}/change")
    def change(name: str, body: EndpointChange, user: Admin) -> Response:
        """Change the prompt or a limit; another prompt asks about every sentence again."""
        _find(context, name)
        changes = body.model_dump(exclude_none=True)
        endpoint = Endpoint.from_json(source_settings(store, _find(context, name)))
        source = change_source(store, name, endpoint.changed(changes).to_json())
        context.figures.forget()
        return reply(_described(context, source))

    @routes.post("/endpoints/{name:path}/consent")
    def consent(name: str, body: Consent, user: Admin) -> Response:
        """Say in the project's settings whether text may be sent to the address that was shown."""
        source = _find(context, name)
        if body.origin != Endpoint.from_json(source_settings(store, source)).origin:
            raise HTTPException(409, "the address has changed since it was shown; load it again")
        allowed = _allowed(context) - {body.origin} | ({body.origin} if body.yes else set())
        change_settings(context.project.folder, send_text_to=" ".join(sorted(allowed)))
        return reply(_described(context, source))

    @routes.post("/endpoints/{name:path}/take-back")
    def take_back(name: str, user: Admin) -> Response:
        """Take back what the model has answered, and let it answer no more."""
        source = _find(context, name)
        silent = Endpoint.from_json(source_settings(store, source)).changed({"answers": 0.0})
        source = change_source(store, name, silent.to_json())
        taken = take_all_back(store, source, user.id)
        return reply(_described(context, source) | {"taken": taken})

    return routes


def _find(context: Context, name: str) -> Source:
    source = find_source(context.store, name)
    if source.kind != LLM:
        raise HTTPException(422, "this source is no language model")
    return source


def _allowed(context: Context) -> set[str]:
    return {*read_settings(context.project.folder).send_text_to.split()}


def _described(context: Context, source: Source) -> dict[str, Any]:
    store, wrong = context.store, problems(context.store, source)
    endpoint = Endpoint.from_json(source_settings(store, source))
    with store.reading() as conn:
        coming = coming_ids(conn, 1)
    sentence = next(iter(read_sentences(store, coming)), None)
    fields = store.read_tags(), context.project.guidelines
    used = read_usage(store, source)
    return {
        "name": source.name,
        **endpoint.to_json(),
        "origin": endpoint.origin,
        "allowed": endpoint.origin in _allowed(context),
        "usage": used | {"cost": used["tokens"] * endpoint.price / 1e6},
        "default": PROMPT,
        "preview": None if sentence is None else filled(endpoint.prompt, sentence, *fields),
        "answered": sum(name == source.name for name in answered_by_models(store).values()),
        "weight": weights(store).get(source.name, 0.0),
        "unusable": len(wrong),
        "why": wrong[-1] if wrong else None,
    }
