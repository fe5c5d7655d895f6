"""The routes of the prediction server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, HTTPException, Response

from seqmix.data.spans import OUTSIDE
from seqmix.serve.predictor import metrics
from seqmix.serve.predictor.batching import Batcher, FullError, Input, Tagged
from seqmix.serve.predictor.bodies import (
    Entity,
    Health,
    InferenceBody,
    PredictBody,
    Predictions,
    TextBody,
)
from seqmix.serve.predictor.metrics import Metrics, metric, single
from seqmix.serve.predictor.model import ServedModel, ServedTagger
from seqmix.serve.predictor.shapes import entities, labels_of, prediction
from seqmix.serve.web.errors import error_responses
from seqmix.serve.web.responses import reply

_FULL = error_responses(500, 503)


@dataclass(frozen=True)
class Predictor:
    """What the routes share: the model, the queue in front of it, and the counters."""

    served: ServedModel
    batcher: Batcher
    metrics: Metrics

    async def tag(self, inputs: Sequence[Input], n: int = 1) -> tuple[ServedTagger, list[Tagged]]:
        """Return the best paths of each sentence, and the model they come from."""
        model = self.served.current
        try:
            return model, await self.batcher.tag(model, inputs, n)
        except FullError as full:
            raise HTTPException(
                503,
                f"at most {self.batcher.most} sentences may wait; try again, or send fewer",
                {"Retry-After": str(full.seconds)},
            ) from None


def predict_routes(predictor: Predictor) -> APIRouter:
    """Return the routes that predict."""
    routes = APIRouter()

    @routes.post("/predict", response_model=Predictions, responses=_FULL)
    async def predict(body: PredictBody) -> Response:
        """Tag texts or tokens."""
        inputs: Sequence[Input]
        if isinstance(body, TextBody):
            inputs = [body.text] if isinstance(body.text, str) else body.text
        else:
            many = bool(body.tokens) and isinstance(body.tokens[0], list)
            inputs = body.tokens if many else [body.tokens]  # type: ignore[list-item]
        model, tagged = await predictor.tag(inputs, body.n)
        predictions = [prediction(each, model.tags) for each in tagged]
        return reply({"model": model.version, "predictions": predictions})

    @routes.post("/", response_model=list[Entity] | list[list[Entity]], responses=_FULL)
    async def token_classification(body: InferenceBody) -> Response:
        """Tag texts as Hugging Face's inference endpoints do."""
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        model, tagged = await predictor.tag(texts)
        asked = body.parameters
        strategy = (asked and asked.aggregation_strategy) or "simple"
        ignored = (OUTSIDE,) if not asked or asked.ignore_labels is None else asked.ignore_labels
        each = [entities(sentence, model.tags, strategy, ignored) for sentence in tagged]
        return reply(each[0] if isinstance(body.inputs, str) else each)

    return routes


def state_routes(predictor: Predictor) -> APIRouter:
    """Return the routes that say how the server is."""
    routes = APIRouter()
    served = predictor.served

    @routes.get("/health", response_model=Health)
    async def health() -> Response:
        """Say which model answers, and why a newer one does not."""
        model, trouble = served.current, served.trouble
        return reply(
            {
                "status": "ok" if trouble is None else "stale",
                "model": model.version,
                "loaded_at": model.loaded_at,
                "labels": labels_of(model.tags),
                "waiting": predictor.batcher.waiting,
                "trouble": trouble,
            }
        )

    @routes.get("/metrics", response_class=Response, responses={200: {"content": _METRICS}})
    async def read_metrics() -> Response:
        """Return counters for Prometheus."""
        lines = [*predictor.metrics.lines(), *_state_lines(predictor)]
        return Response("\n".join(lines) + "\n", headers={"Content-Type": metrics.MEDIA_TYPE})

    return routes


_METRICS = {metrics.MEDIA_TYPE: {"schema": {"type": "string"}}}


def _state_lines(predictor: Predictor) -> Iterator[str]:
    served = predictor.served
    model, reloads = served.current, served.reloads
    results = [
        ("", {"result": "done"}, float(reloads.done)),
        ("", {"result": "failed"}, float(reloads.failed)),
    ]
    waiting = predictor.batcher.waiting
    yield from single("waiting_sentences", "gauge", "Sentences waiting.", waiting)
    yield from metric("model_info", "gauge", "The model.", [("", {"version": model.version}, 1.0)])
    loaded = "When the model was loaded."
    yield from single("model_loaded_timestamp_seconds", "gauge", loaded, model.loaded_at)
    yield from metric("model_reloads_total", "counter", "Changed models loaded.", results)
    stale = "Whether a newer model cannot be loaded."
    yield from single("model_stale", "gauge", stale, served.trouble is not None)
