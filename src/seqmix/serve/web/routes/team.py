"""Routes for a team: agreement, conflicts and their adjudication, annotators."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from seqmix.serve.progress.agreement import Conflict, agreement, conflicts
from seqmix.serve.project_status import work_json
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import work_by_annotator
from seqmix.serve.store.records import Mark
from seqmix.serve.web.context import Admin, Context, User, ranges_json, sentence_json, spans_json
from seqmix.serve.web.requests import Adjudication, NewAnnotator
from seqmix.serve.web.responses import reply


def team_routes(context: Context) -> APIRouter:
    """Return the routes for several annotators."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.get("/agreement")
    def agreement_of_pairs(user: User) -> Response:
        """Return how well annotators agree where two answered the same sentence."""
        total = agreement(store)
        pairs = [
            {"a": pair.a, "b": pair.b, "n": pair.n, "f1": pair.f1, "kappa": pair.kappa}
            for pair in total.pairs
        ]
        overall = {"n": total.n, "f1": total.f1, "kappa": total.kappa}
        return reply({"pairs": pairs, "overall": overall})

    @routes.get("/conflicts")
    def differing_answers(user: Admin) -> Response:
        """Return the sentences on which answers differ; for admins, as second answers are blind."""
        return reply([_conflict(conflict) for conflict in conflicts(store)])

    @routes.post("/adjudications", status_code=201)
    def adjudicate(body: Adjudication, user: Admin) -> Response:
        """Decide which answer counts."""
        marks = [Mark(span.start, span.end, span.tag) for span in body.spans]
        content = (marks, None, 0.0, body.version)
        event = save_answer(
            store, body.id, user.id, "adjudicate", *content, tag_change=body.tag_change
        )
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.get("/annotators")
    def annotators(user: Admin) -> Response:
        """Return all annotators, how much each answered, and the seconds of an answer."""
        return reply([asdict(w.annotator) | work_json(w) for w in work_by_annotator(store)])

    @routes.post("/annotators", status_code=201)
    def invite(body: NewAnnotator, request: Request, user: Admin) -> Response:
        """Add an annotator and return their login link, which cannot be read again."""
        token = add_annotator(store, body.name)
        origin = f"{request.url.scheme}://{request.headers['host']}"
        return reply({"name": body.name, "link": f"{origin}/login?token={token}"}, 201)

    return routes


def _conflict(conflict: Conflict) -> dict[str, Any]:
    answers = [
        {
            "annotator": answer.annotator,
            "spans": spans_json(answer.spans),
            "sure": ranges_json(answer.sure),
        }
        for answer in conflict.answers
    ]
    return {**sentence_json(conflict.sentence, conflict.version), "answers": answers}
