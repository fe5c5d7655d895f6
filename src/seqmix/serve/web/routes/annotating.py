"""What annotating needs: the project, the next sentence, saving, skipping, undoing, going back."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from seqmix.serve.store.annotators import list_annotators
from seqmix.serve.store.answers import last_answer, save_answer, undo_answer
from seqmix.serve.store.current import current_answers, read_counts
from seqmix.serve.store.queue import Shown, next_sentence, show_sentence, why_nothing_left
from seqmix.serve.store.records import Mark
from seqmix.serve.web.context import Me, Site, ranges, shown, spans
from seqmix.serve.web.requests import Annotation, Skip, Undo
from seqmix.serve.web.responses import reply


def router(site: Site) -> APIRouter:
    """The routes for one project. Plain functions run in threads of their own; what writes takes its turn with the others who write."""
    routes, store, turns = APIRouter(prefix="/api"), site.store, site.turns

    @routes.get("/project")
    def project(me: Me) -> Response:
        """What is to be labeled, and by which rules."""
        settings = site.project.settings
        tags = [
            {"name": tag, "key": str(at + 1) if at < 9 else None, "color": at}
            for at, tag in enumerate(store.read_tags())
        ]
        return reply(
            {
                "name": settings.name,
                "tags": tags,
                "direction": settings.direction,
                "guidelines": site.project.guidelines,
                "annotator": {"name": me.name, "admin": me.admin},
                "annotators": len(list_annotators(store)),
                "sentences": read_counts(store).sentences,
                "audit_share": settings.audit_share,
                "overlap_share": settings.overlap_share,
            }
        )

    @routes.get("/next")
    async def following(me: Me) -> Response:
        """The sentence to label now; the same one again until it is answered."""
        given = await turns.commit(
            lambda: next_sentence(store, me.id, site.project.rules), durable=False
        )
        if given is None:
            return reply(
                {"sentence": None, "why": await run_in_threadpool(why_nothing_left, store)}
            )
        return reply(_given(given))

    @routes.get("/sentences/{id:path}")
    def sentence(id: str, me: Me) -> Response:
        """A sentence to go back to, with what this annotator said of it."""
        found = _given(show_sentence(store, id, me.id))
        own = [
            answer
            for answer in current_answers(store, id, overridden=True)
            if answer.annotator_id == me.id and answer.kind == "label"
        ]
        return reply(
            {
                **found,
                "answer": {"spans": spans(own[-1].spans), "sure": ranges(own[-1].sure)}
                if own
                else None,
            }
        )

    @routes.post("/annotations", status_code=201)
    async def annotate(body: Annotation, me: Me) -> Response:
        """Save an answer. It is on the disk when this returns; the same answer sent twice is one."""
        marks = [Mark(span.start, span.end, span.tag) for span in body.spans]
        sure = None if body.sure is None else [(start, end) for start, end in body.sure]
        event = await turns.commit(
            lambda: save_answer(
                store, body.id, me.id, "label", marks, sure, body.seconds, body.version
            )
        )
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.post("/skip", status_code=201)
    async def skip(body: Skip, me: Me) -> Response:
        """Leave a sentence to others; it comes back at the end."""
        event = await turns.commit(
            lambda: save_answer(
                store, body.id, me.id, "skip", seconds=body.seconds, version=body.version
            )
        )
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.post("/undo")
    async def undo(body: Undo, me: Me) -> Response:
        """Take an answer or skip back; its sentence is to be shown again. `last` is the one that could be taken back next."""
        event = await turns.commit(lambda: undo_answer(store, me.id, body.seq))
        last = await run_in_threadpool(last_answer, store, me.id)
        shown = (
            {"id": None}
            if event is None
            else {"id": event.sentence_id, "version": event.seq, "stream": event.stream}
        )
        return reply({**shown, "last": last})

    return routes


def _given(given: Shown) -> dict[str, Any]:
    return {
        "sentence": shown(given.sentence, given.version),
        "stream": given.stream,
        "suggestion": given.suggestion,
        "generation": given.generation,
        "left": given.left,
    }
