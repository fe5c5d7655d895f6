"""The prediction server: /predict, / for Hugging Face's clients, /inception, /health, /metrics.

Errors are {"error": "one sentence"}, as those of the annotation server, and 503 with Retry-After
when too many sentences wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seqmix.serve.predictor.batching import MOST, Batcher
from seqmix.serve.predictor.inception import BODY, TokenInPath, inception_routes, without_token
from seqmix.serve.predictor.metrics import Metrics
from seqmix.serve.predictor.model import ServedModel
from seqmix.serve.predictor.routes import Predictor, predict_routes, state_routes
from seqmix.serve.store.records import Annotator
from seqmix.serve.web.credentials import Tokens
from seqmix.serve.web.errors import add_error_handlers, error_responses
from seqmix.serve.web.security import Hosts, Limits, SecurityMiddleware

EVERY = 1.0  # seconds between two looks at the model's files
LIMITS = Limits(rate=2000.0, burst=4000.0)  # one token may have many clients; the queue is bounded
_PREDICTING = ("/", "/predict", "/inception/predict")
_PATHS = (*_PREDICTING, "/inception/train", "/health", "/metrics", "/openapi.json")
_NO_TOKEN = "a token is needed: `Authorization: Bearer TOKEN`, with the token of `seqmix serve`"
ROUTES = (predict_routes, state_routes, inception_routes)


def create_app(
    served: ServedModel,
    token: str,
    limits: Limits = LIMITS,
    most: int = MOST,
) -> ASGIApp:
    """Return the application for a model; `most` sentences may wait."""
    metrics = Metrics()
    predictor = Predictor(served, Batcher(metrics.add_batch, most), metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(predictor.batcher.run()), asyncio.create_task(_watch(served))]
        yield
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)

    app = FastAPI(
        title="seqmix",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=error_responses(400, 401, 403, 408, 413, 415, 421, 422, 429),
    )
    for routes in ROUTES:
        app.include_router(routes(predictor))
    add_error_handlers(app)
    tokens = Tokens(lambda token: None, (token, Annotator(0, "client")))
    guard, larger = (
        SecurityMiddleware(app, tokens, _AnyName(), each, no_token=_NO_TOKEN)
        for each in (limits, replace(limits, body=max(limits.body, BODY)))
    )
    return _Measured(TokenInPath(guard, larger), metrics)


class _AnyName(Hosts):
    """Every Host is accepted: clients send the token themselves, so a page elsewhere lacks it."""

    def allow(self, header: str) -> bool:
        """Whether a Host header is accepted."""
        return True


async def _watch(served: ServedModel) -> None:
    """Look at the model's files now and then."""
    while True:
        await asyncio.sleep(EVERY)
        await asyncio.to_thread(served.check)


class _Measured:
    """Counts requests by path and status, refused ones too, and times predictions."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start, path = time.perf_counter(), without_token(scope["path"])

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = path if path in _PATHS else "other"
                self.metrics.requests[known, message["status"]] += 1
                if path in _PREDICTING and message["status"] == 200:
                    self.metrics.add_latency(path, time.perf_counter() - start)
            await send(message)

        return await self.app(scope, receive, counting)
