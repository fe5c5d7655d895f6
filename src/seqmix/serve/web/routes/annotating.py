"""Routes for annotating: the project, the next sentence, save, skip, discard, undo, go back."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from seqmix.data.sentence import Sentence
from seqmix.serve.answers.mark_all import MARK_ALL, MARKED
from seqmix.serve.answers.neighbors import neighbors
from seqmix.serve.sources.llm.annotator import save_over_models
from seqmix.serve.sources.offers import Offer
from seqmix.serve.store.annotators import list_annotators
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.batches import batch_of, last_action
from seqmix.serve.store.batches.undo import is_decision, undo_answer
from seqmix.serve.store.current import current_answers, read_counts
from seqmix.serve.store.queue import Shown, next_sentence, show_sentence, why_nothing_left
from seqmix.serve.store.records import Annotator, Mark
from seqmix.serve.web.context import Context, User, ranges_json, sentence_json, spans_json
from seqmix.serve.web.requests import Annotation, Skip, Undo
from seqmix.serve.web.responses import reply
from seqmix.serve.web.routes.comments import comments_json
from seqmix.serve.web.routes.marking import undone_json
from seqmix.serve.web.routes.tags import tags_json

_READ = 400  # tokens of a neighbor that are shown


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
        return reply(await run_in_threadpool(shown_json, context, shown, user))

    @routes.get("/sentences/{id:path}")
    def sentence(id: str, user: User) -> Response:
        """Return a sentence to go back to, with this annotator's answer."""
        shown = shown_json(context, show_sentence(store, id, user.id), user)
        kinds = {
            answer.kind: {
                "spans": spans_json(answer.spans),
                "sure": ranges_json(answer.sure),
                "open": [mark._asdict() for mark in answer.open],
            }
            for answer in current_answers(store, id, overridden=True)
            if answer.annotator_id == user.id
        }
        return reply({**shown, "answer": kinds.get("label"), "discarded": "discard" in kinds})

    @routes.get("/neighbors/{id:path}")
    def around(id: str, user: User) -> Response:
        """Return the text before and after a sentence in its document, and nobody's answers."""
        near = neighbors(store, id)
        before, after = ([_text(s) for s in side] for side in (near.before, near.after))
        return reply({"document": near.document, "before": before, "after": after})


def _add_answers(routes: APIRouter, context: Context) -> None:
    store, writer = context.store, context.writer

    @routes.post("/annotations", status_code=201)
    async def annotate(body: Annotation, user: User) -> Response:
        """Save an answer, which is then on the disk; a repeated request is one answer."""
        marks = [Mark(span.start, span.end, span.tag) for span in body.spans]
        sure = None if body.sure is None else [(start, end) for start, end in body.sure]
        content = (marks, sure, body.seconds, body.version)
        shown = await run_in_threadpool(_count_shown, context, body, user, marks)
        known = body.tag_change
        event = await writer.commit(
            lambda: save_over_models(
                store, body.id, user.id, "label", *content, shown=shown, tag_change=known
            )
        )
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.post("/skip", status_code=201)
    async def skip(body: Skip, user: User) -> Response:
        """Leave a sentence to others; it comes back at the end."""
        content = ((), None, body.seconds, body.version)
        event = await writer.commit(lambda: save_answer(store, body.id, user.id, "skip", *content))
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.post("/discard", status_code=201)
    async def discard(body: Skip, user: User) -> Response:
        """Take bad text out: nobody is asked about it, no model learns it, no export has it."""
        content = ("discard", (), None, body.seconds, body.version)
        event = await writer.commit(lambda: save_over_models(store, body.id, user.id, *content))
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.post("/undo")
    async def undo(body: Undo, user: User) -> Response:
        """Cancel an answer or skip, and show its sentence again; `last` could be undone next.

        An answer of a batch is cancelled with all of the batch. A decision about an answer is
        cancelled so that the answer counts again.
        """
        if batch := await run_in_threadpool(batch_of, store, body.seq):
            return reply(await run_in_threadpool(undone_json, store, batch, user))
        event = await writer.commit(lambda: undo_answer(store, user.id, body.seq))
        last = await run_in_threadpool(last_action, store, user.id)
        if event is None:
            return reply({"id": None, "last": last})
        decision = await run_in_threadpool(is_decision, store, body.seq)
        undone = {"id": event.sentence_id, "version": event.seq, "stream": event.stream}
        return reply({**undone, "decision": decision, "last": last})


def _text(sentence: Sentence) -> dict[str, Any]:
    """Return the text of a sentence to read, at most its first tokens."""
    content = sentence_json(sentence, 0)
    spaces = content["spaces"] and content["spaces"][:_READ]
    return {"tokens": content["tokens"][:_READ], "spaces": spaces, "length": len(sentence)}


def _count_shown(
    context: Context, body: Annotation, user: Annotator, marks: list[Mark]
) -> dict[str, list[Any]] | None:
    """Return how much the suggestions on the page offered, and how much of it was kept."""
    if not body.sources:
        return None
    shown = show_sentence(context.store, body.id, user.id)
    counts = context.sources.shown(shown.sentence, body.sources, marks, shown.suggestion)
    if MARKED in body.sources and (marked := _marked(context, shown, user)):
        counts[MARKED] = [len(marked), len({*marked} & {*marks})]
    return counts


def _project(context: Context, user: Annotator) -> dict[str, Any]:
    settings, store = context.project.settings, context.store
    return {
        "name": settings.name,
        "tags": tags_json(store),
        "tag_change": store.tag_history().newest,
        "direction": settings.direction,
        "guidelines": context.project.guidelines,
        "annotator": {"name": user.name, "admin": user.admin},
        "annotators": len(list_annotators(store)),
        "sentences": read_counts(store).sentences,
        "audit_share": settings.audit_share,
        "overlap_share": settings.overlap_share,
    }


def _marked(context: Context, shown: Shown, user: Annotator) -> tuple[Mark, ...]:
    """Return the marks of texts that were marked everywhere; a second answer sees its own only."""
    return context.marked.marks(shown.sentence, user.id if shown.stream == "overlap" else None)


def shown_json(context: Context, shown: Shown, user: Annotator) -> dict[str, Any]:
    """Return a sentence with all that is suggested for it and said of it."""
    blind = shown.stream == "audit"  # its F1 must not depend on suggestions
    offers = [] if blind else context.sources.offers(shown.sentence)
    marked = () if blind else _marked(context, shown, user)
    offers += [Offer(MARKED, MARK_ALL, marked)] if marked else []
    return {
        "sentence": sentence_json(shown.sentence, shown.version),
        "stream": shown.stream,
        "suggestion": shown.suggestion,
        "offers": [offer.to_json() for offer in offers],
        "comments": comments_json(context, shown.sentence.id, user),
        "generation": shown.generation,
        "left": shown.left,
    }
