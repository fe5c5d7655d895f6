"""Routes for annotating: the project, the next sentence, save, skip, undo, go back."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from seqmix.serve.store.annotators import list_annotators
from seqmix.serve.store.answers import last_answer, save_answer, undo_answer
from seqmix.serve.store.current import current_answers, read_counts
from seqmix.serve.store.queue import Shown, next_sentence, show_sentence, why_nothing_left
from seqmix.serve.store.records import Annotator, Mark
from seqmix.serve.web.context import Context, User, ranges_json, sentence_json, spans_json
from seqmix.serve.web.requests import Annotation, Skip, Undo
from seqmix.serve.web.responses import reply


def annotating_routes(context: Context) -> APIRouter:
    """Return the routes; plain functions run in threads, and all writing is one group commit."""
    routes = APIRouter(prefix="/api")
    _add_questions(routes, context)
    _add_answers(routes, context)
    return routes


def _add_questions(routes: APIRouter, context: Context) -> None:
    store, writer = context.store, context.writer

    @routes.get("/project")
    def project(user: User) -> Response:
        """Return what is to be labeled, and by which rules."""
        return reply(_project(context, user))

    @routes.get("/next")
    async def next(user: User) -> Response:
        """Return the sentence to label; the same again until it is answered."""
        rules = context.project.rules
        shown = await writer.commit(lambda: next_sentence(store, user.id, rules), durable=False)
        if shown is None:
            why = await run_in_threadpool(why_nothing_left, store)
            return reply({"sentence": None, "why": why})
        return reply(_shown_json(shown))

    @routes.get("/sentences/{id:path}")
    def sentence(id: str, user: User) -> Response:
        """Return a sentence to go back to, with this annotator's answer."""
        shown = _shown_json(show_sentence(store, id, user.id))
        labels = [
            {"spans": spans_json(answer.spans), "sure": ranges_json(answer.sure)}
            for answer in current_answers(store, id, overridden=True)
            if answer.annotator_id == user.id and answer.kind == "label"
        ]
        return reply({**shown, "answer": labels[-1] if labels else None})


def _add_answers(routes: APIRouter, context: Context) -> None:
    store, writer = context.store, context.writer

    @routes.post("/annotations", status_code=201)
    async def annotate(body: Annotation, user: User) -> Response:
        """Save an answer, which is then on the disk; a repeated request is one answer."""
        marks = [Mark(span.start, span.end, span.tag) for span in body.spans]
        sure = None if body.sure is None else [(start, end) for start, end in body.sure]
        content = (marks, sure, body.seconds, body.version)
        event = await writer.commit(lambda: save_answer(store, body.id, user.id, "label", *content))
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.post("/skip", status_code=201)
    async def skip(body: Skip, user: User) -> Response:
        """Leave a sentence to others; it comes back at the end."""
        content = ((), None, body.seconds, body.version)
        event = await writer.commit(lambda: save_answer(store, body.id, user.id, "skip", *content))
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.post("/undo")
    async def undo(body: Undo, user: User) -> Response:
        """Cancel an answer or skip, and show its sentence again; `last` could be undone next."""
        event = await writer.commit(lambda: undo_answer(store, user.id, body.seq))
        last = await run_in_threadpool(last_answer, store, user.id)
        if event is None:
            return reply({"id": None, "last": last})
        undone = {"id": event.sentence_id, "version": event.seq, "stream": event.stream}
        return reply({**undone, "last": last})


def _project(context: Context, user: Annotator) -> dict[str, Any]:
    settings, store = context.project.settings, context.store
    tags = [
        {"name": tag, "key": str(at + 1) if at < 9 else None, "color": at}
        for at, tag in enumerate(store.read_tags())
    ]
    return {
        "name": settings.name,
        "tags": tags,
        "direction": settings.direction,
        "guidelines": context.project.guidelines,
        "annotator": {"name": user.name, "admin": user.admin},
        "annotators": len(list_annotators(store)),
        "sentences": read_counts(store).sentences,
        "audit_share": settings.audit_share,
        "overlap_share": settings.overlap_share,
    }


def _shown_json(shown: Shown) -> dict[str, Any]:
    return {
        "sentence": sentence_json(shown.sentence, shown.version),
        "stream": shown.stream,
        "suggestion": shown.suggestion,
        "generation": shown.generation,
        "left": shown.left,
    }
