"""Routes about answers in doubt: the list, keep or mend one, look for more."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from seqmix.data.sentence import Sentence
from seqmix.errors import SeqMixError
from seqmix.serve.review.correction import (
    AnswerInDoubt,
    correct_answer,
    proposal,
    read_answer,
    texts_of,
)
from seqmix.serve.review.doubts import (
    CHECKED,
    JUDGED,
    REVIEW_NOW,
    Review,
    compare_answers,
    keep_answer,
    list_reviews,
)
from seqmix.serve.review.evidence import Doubt
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.records import Annotator, Mark
from seqmix.serve.store.store import Store
from seqmix.serve.web.context import (
    Admin,
    Context,
    User,
    is_blind,
    ranges_json,
    sentence_json,
    spans_json,
)
from seqmix.serve.web.requests import Check, Count, Mended, Reviewed
from seqmix.serve.web.responses import reply

_SHOWN = 400  # tokens of an example


def review_routes(context: Context) -> APIRouter:
    """Return the routes."""
    routes, comparing = APIRouter(prefix="/api"), threading.Lock()
    _add_corrections(routes, context)

    @routes.get("/reviews")
    def reviews(user: User, limit: Annotated[Count, Query()] = 20) -> Response:
        """Return answers in doubt, the most likely error first, and what speaks against each.

        Examples from other answers are left out where people give second answers.
        """
        listed, total = list_reviews(context.store, user, limit)
        blind = is_blind(context, user)
        texts = {} if blind else texts_of(context.store, listed)
        entries = [_entry(context.store, user, review, texts) for review in listed]
        return reply(
            {
                "reviews": [entry for entry in entries if entry is not None],
                "total": total,
                "judged": context.store.read_note(JUDGED),
                "judging": context.store.read_note(REVIEW_NOW) is not None,
            }
        )

    @routes.post("/reviews/compare")
    def compare(user: User) -> Response:
        """Compare the answers with each other, unless nothing is new since the last time."""
        with comparing:
            return reply({"compared": _compare(context.store)})

    @routes.post("/reviews/judge")
    def judge(body: Check, user: Admin) -> Response:
        """Let models judge the answers that they have not learned from, or no longer."""
        context.store.write_note(REVIEW_NOW, time.time() if body.model else None)
        return reply({"judging": body.model})

    return routes


def _add_corrections(routes: APIRouter, context: Context) -> None:
    store, writer = context.store, context.writer

    @routes.post("/reviews/keep")
    def keep(body: Reviewed, user: User) -> Response:
        """Note that an answer in doubt is right, or take that back."""
        return reply({"settled": keep_answer(store, user, body.id, body.seq, body.keep)})

    @routes.post("/reviews/mend", status_code=201)
    async def mend(body: Mended, user: User) -> Response:
        """Correct an answer in doubt: one's own, or as an admin anybody's."""
        marks = [Mark(span.start, span.end, span.tag) for span in body.spans]
        sure = None if body.sure is None else [(start, end) for start, end in body.sure]
        content = (marks, sure, body.seconds, body.version, body.tag_change)
        event, before = await writer.commit(
            lambda: correct_answer(store, user, body.id, body.seq, *content)
        )
        kind = {"seq": event.seq, "kind": event.kind, "before": spans_json(before.spans)}
        return reply(kind, 201)


def _compare(store: Store) -> bool:
    state = {"events": read_counts(store).events, "tags": store.tag_history().newest}
    if store.read_note(CHECKED) == state:
        return False
    compare_answers(store)
    store.write_note(CHECKED, state)
    return True


def _entry(
    store: Store, user: Annotator, review: Review, texts: Mapping[str, Sentence]
) -> dict[str, Any] | None:
    try:
        reading = read_answer(store, user, review.sentence_id, review.seq)
    except SeqMixError:  # changed since it was listed
        return None
    return {
        **sentence_json(reading.sentence, reading.version),
        "seq": review.seq,
        "score": review.score,
        "annotator": reading.annotator,
        "mine": reading.mine,
        "whole": reading.kind == "adjudicate",  # a correction is about the whole sentence
        "spans": spans_json(reading.spans),
        "sure": ranges_json(reading.sure),
        "doubts": [_doubt(doubt, reading, store.tags, texts) for doubt in review.doubts],
    }


def _doubt(
    doubt: Doubt, reading: AnswerInDoubt, tags: tuple[str, ...], texts: Mapping[str, Sentence]
) -> dict[str, Any]:
    details = {key: value for key, value in doubt.details.items() if key != "examples"}
    spans = proposal(doubt, reading.spans, tags)
    examples = [
        {**_text(texts[id]), "start": start, "end": end}
        for id, start, end in doubt.details.get("examples", ())
        if id in texts
    ]
    return {
        "kind": doubt.kind,
        "score": doubt.score,
        "details": details,
        "proposal": None if spans is None else spans_json(spans),
        "examples": examples,
    }


def _text(sentence: Sentence) -> dict[str, Any]:
    content = sentence_json(sentence, 0)
    spaces = content["spaces"] and content["spaces"][:_SHOWN]
    return {"id": sentence.id, "tokens": content["tokens"][:_SHOWN], "spaces": spaces}
