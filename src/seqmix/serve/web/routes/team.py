"""What several people need: agreement, conflicts and who decides them, who there is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from seqmix.serve.agreement import Conflict, agreement, conflicts
from seqmix.serve.store.annotators import add_annotator, list_annotators
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.records import Mark
from seqmix.serve.web.context import Admin, Me, Site, ranges, shown, spans
from seqmix.serve.web.requests import Adjudication, NewAnnotator
from seqmix.serve.web.responses import reply


def router(site: Site) -> APIRouter:
    """The routes for one project."""
    routes, store = APIRouter(prefix="/api"), site.store

    @routes.get("/agreement")
    def agreed(me: Me) -> Response:
        """How far annotators agree where two answered the same sentence."""
        found = agreement(store)
        pairs = [
            {"a": pair.a, "b": pair.b, "n": pair.n, "f1": pair.f1, "kappa": pair.kappa}
            for pair in found.pairs
        ]
        return reply(
            {"pairs": pairs, "overall": {"n": found.n, "f1": found.f1, "kappa": found.kappa}}
        )

    @routes.get("/conflicts")
    def differing(me: Admin) -> Response:
        """Sentences on which answers differ. For admins: who sees another's answer first no longer gives one of their own."""
        return reply([_conflict(one) for one in conflicts(store)])

    @routes.post("/adjudications", status_code=201)
    def adjudicate(body: Adjudication, me: Admin) -> Response:
        """Decide what holds."""
        marks = [Mark(span.start, span.end, span.tag) for span in body.spans]
        event = save_answer(store, body.id, me.id, "adjudicate", marks, version=body.version)
        return reply({"seq": event.seq, "version": event.seq}, 201)

    @routes.get("/annotators")
    def annotators(me: Admin) -> Response:
        """Everybody."""
        return reply([asdict(annotator) for annotator in list_annotators(store)])

    @routes.post("/annotators", status_code=201)
    def invite(body: NewAnnotator, request: Request, me: Admin) -> Response:
        """Somebody new, with the link that lets them in; it is shown this once."""
        token = add_annotator(store, body.name)
        return reply(
            {
                "name": body.name,
                "link": f"{request.url.scheme}://{request.headers['host']}/login?token={token}",
            },
            201,
        )

    return routes


def _conflict(conflict: Conflict) -> dict[str, Any]:
    answers = [
        {"annotator": answer.annotator, "spans": spans(answer.spans), "sure": ranges(answer.sure)}
        for answer in conflict.answers
    ]
    return {**shown(conflict.sentence, conflict.version), "answers": answers}
