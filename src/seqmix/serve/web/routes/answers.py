"""Routes to look answers and open sentences up again."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from sqlalchemy import select

from seqmix.errors import NotFoundError
from seqmix.serve.answers.comments import list_comments
from seqmix.serve.answers.correcting import correction_kind, read_correction
from seqmix.serve.answers.search import Entry, Wanted, search
from seqmix.serve.store.annotators import list_annotators
from seqmix.serve.store.derived import DECISION
from seqmix.serve.store.queue import show_sentence
from seqmix.serve.store.records import Annotator
from seqmix.serve.store.schema import sources
from seqmix.serve.web.context import Context, User, is_blind, ranges_json, sentence_json, spans_json
from seqmix.serve.web.requests import AnswerQuery
from seqmix.serve.web.responses import reply
from seqmix.serve.web.routes.annotating import shown_json
from seqmix.serve.web.routes.comments import comment_json

_SHOWN = 400  # tokens of a sentence in the list


def answer_routes(context: Context) -> APIRouter:
    """Return the routes."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.get("/answers")
    def answers(query: Annotated[AnswerQuery, Query()], user: User) -> Response:
        """Return answers, newest first, or open sentences, and the key to resume behind.

        Where sentences get a second answer, only admins see answers of others.
        """
        reader = user.id if is_blind(context, user) else None
        wanted = Wanted(**query.model_dump(exclude={"after", "limit"}))
        entries, last = search(store, wanted, query.after, query.limit, reader)
        said = defaultdict[str, list[dict[str, Any]]](list)
        for comment in list_comments(store, {entry.sentence.id for entry in entries}, reader):
            said[comment.sentence_id].append(comment_json(comment, user))
        listed = [_entry(entry, user) | {"comments": said[entry.sentence.id]} for entry in entries]
        return reply({"answers": listed, "next": last})

    @routes.get("/answers/choices")
    def choices(user: User) -> Response:
        """Return the people and the sources to filter by."""
        everybody = [annotator.name for annotator in list_annotators(store)]
        people = [user.name] if is_blind(context, user) else everybody
        with store.reading() as conn:
            names = list(conn.execute(select(sources.c.name).order_by(sources.c.id)).scalars())
        return reply({"people": people, "sources": names})

    @routes.get("/answers/{seq}")
    def answer(seq: Annotated[int, Path(ge=0, le=2**63 - 1)], user: User) -> Response:
        """Return an answer to correct: by a label of the user's, or by an admin's decision."""
        there = read_correction(store, user, seq)
        wanted, mine = there.answer, there.answer.annotator_id == user.id
        if not mine and is_blind(context, user):
            raise NotFoundError("answer of yours", seq)
        shown = shown_json(context, show_sentence(store, wanted.sentence_id, user.id), user)
        shown["sentence"]["version"] = there.version
        content = {
            "spans": spans_json(wanted.spans),
            "sure": None if there.kind == DECISION else ranges_json(wanted.sure),
            "open": [mark._asdict() for mark in wanted.open],
        }
        corrects = {"seq": seq, "kind": there.kind, "annotator": wanted.annotator, "mine": mine}
        return reply({**shown, "answer": content, "corrects": corrects})

    return routes


def _entry(entry: Entry, user: Annotator) -> dict[str, Any]:
    sentence, answer = sentence_json(entry.sentence, 0), entry.answer
    content = {
        "id": sentence["id"],
        "tokens": sentence["tokens"][:_SHOWN],
        "spaces": sentence["spaces"] and sentence["spaces"][:_SHOWN],
        "length": len(entry.sentence),
        "stream": entry.stream,
        "answer": None,
        "seed": None,
    }
    if entry.seed is not None:  # labels that it came with
        spans, sure = entry.seed
        shown = spans_json(mark for mark in spans if mark.end <= _SHOWN)
        return content | {"seed": {"spans": shown, "sure": ranges_json(sure)}}
    if answer is None:
        return content
    marks = (mark for mark in answer.spans if mark.end <= _SHOWN)
    return content | {
        "answer": {
            "seq": answer.seq,
            "kind": answer.kind,
            "annotator": answer.annotator,
            "mine": answer.annotator_id == user.id,
            "counts": entry.counts,
            "correction": correction_kind(user, answer, entry.counts),
            "spans": spans_json(marks),
            "sure": ranges_json(answer.sure),
            "open": [mark._asdict() for mark in answer.open],
            "at": answer.at,
            "seconds": answer.seconds,
            "generation": answer.generation,
            "batch": entry.batch and {"id": entry.batch[0], "kind": entry.batch[1]},
            "shown": entry.shown,
        }
    }
