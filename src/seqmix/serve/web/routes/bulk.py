"""Routes to accept many sentences at an error rate; admins only."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from seqmix.errors import DataError
from seqmix.serve.review.bulk import Preview, accept, predictions_of, preview
from seqmix.serve.review.model_answers import PREDICT_NOW
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.web.context import Admin, Context, sentence_json, spans_json
from seqmix.serve.web.requests import Bulk, Predict, Rate
from seqmix.serve.web.responses import reply

_SAMPLE = 10  # sentences that the preview shows: the least certain of those it would accept
_SHOWN = 400  # tokens of each


def bulk_routes(context: Context) -> APIRouter:
    """Return the routes."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.get("/bulk")
    def look(user: Admin, alpha: Annotated[Rate, Query()] = 0.05) -> Response:
        """Return what may be accepted at an error rate of at most alpha; nothing is saved."""
        asked = {"predicting": store.read_note(PREDICT_NOW) is not None}
        try:
            shown = _preview(context, alpha)
        except DataError as error:
            return reply({**asked, "preview": None, "why": str(error)})
        return reply({**asked, "preview": shown.to_json(), "sample": _sample(context, shown)})

    @routes.post("/bulk/predict")
    def predict(body: Predict, user: Admin) -> Response:
        """Let a model that knows the answers alone predict the open sentences, or no longer."""
        store.write_note(PREDICT_NOW, time.time() if body.on else None)
        return reply({"predicting": body.on})

    @routes.post("/bulk/accept", status_code=201)
    def accept_sure(body: Bulk, user: Admin) -> Response:
        """Answer what the preview showed, as one batch that `/api/batches/ID/undo` takes back."""
        predictions = predictions_of(context.project.models, body.at)
        learns = context.project.settings.audit_train
        return reply(asdict(accept(store, predictions, user.id, body.alpha, learns)), 201)

    return routes


def _preview(context: Context, alpha: float) -> Preview:
    predictions = predictions_of(context.project.models)
    return preview(context.store, predictions, alpha, context.project.settings.audit_train)


def _sample(context: Context, shown: Preview) -> list[dict[str, Any]]:
    said = {prediction.id: prediction for prediction in shown.chosen[:_SAMPLE]}
    sample = []
    for sentence in read_sentences(context.store, list(said)):
        content, prediction = sentence_json(sentence, 0), said[sentence.id]
        sample.append(
            {
                "id": sentence.id,
                "tokens": content["tokens"][:_SHOWN],
                "spaces": content["spaces"] and content["spaces"][:_SHOWN],
                "spans": spans_json(mark for mark in prediction.marks if mark.end <= _SHOWN),
                "confidence": prediction.confidence,
            }
        )
    return sample
