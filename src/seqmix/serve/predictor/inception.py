"""INCEpTION's protocol for external recommenders: suggestions for a whole document.

INCEpTION sends no token but calls any address, so the token is part of it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Path, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from seqmix.errors import MissingExtraError
from seqmix.serve.predictor.cas import Document
from seqmix.serve.predictor.routes import Predictor
from seqmix.serve.predictor.shapes import prediction
from seqmix.serve.web.errors import error_responses
from seqmix.serve.web.responses import reply

BODY = 16 * 1024 * 1024  # bytes: a document comes as a whole, twice escaped
_PREFIX = "/inception/"
_AT_ONCE = 200  # sentences; between them, other requests get their turn
Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Token = Annotated[str, Path(description="The token of `seqmix serve`.")]


class _Body(BaseModel):
    """A body whose other keys are ignored: versions of INCEpTION differ in them."""

    model_config = ConfigDict(strict=True, frozen=True)


class Metadata(_Body):
    """What is to be suggested."""

    layer: Name
    feature: Name
    anchoringMode: Literal["characters", "singleToken", "tokens", "sentences"] = "tokens"  # noqa: N815


class CasDocument(_Body):
    """A document."""

    xmi: str = Field(max_length=BODY)


class RecommendBody(_Body):
    """A request for suggestions."""

    metadata: Metadata
    document: CasDocument
    typeSystem: str = Field(max_length=BODY)  # noqa: N815


class Recommendations(BaseModel):
    """The document with the suggestions."""

    document: str


class TokenInPath:
    """Passes requests whose path has the token to an application, as if they had sent it."""

    def __init__(self, others: ASGIApp, inception: ASGIApp) -> None:
        self.others, self.inception = others, inception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or not scope["path"].startswith(_PREFIX):
            return await self.others(scope, receive, send)
        token = scope["path"].removeprefix(_PREFIX).partition("/")[0]
        sent = [header for header in scope["headers"] if header[0].lower() != b"authorization"]
        bearer = (b"authorization", f"Bearer {token}".encode())
        return await self.inception({**scope, "headers": [*sent, bearer]}, receive, send)


def without_token(path: str) -> str:
    """Return INCEpTION's path without the token in it, which no metric may show."""
    if not path.startswith(_PREFIX):
        return path
    return _PREFIX + path.removeprefix(_PREFIX).partition("/")[2]


def inception_routes(predictor: Predictor) -> APIRouter:
    """Return the routes that INCEpTION calls."""
    routes = APIRouter(prefix="/inception/{token}")

    @routes.post(
        "/predict", response_model=Recommendations, responses=error_responses(500, 501, 503)
    )
    async def predict(token: Token, body: RecommendBody) -> Response:
        """Suggest annotations for a document of INCEpTION."""
        asked = body.metadata
        if asked.anchoringMode == "sentences":
            raise HTTPException(422, "a tagger labels tokens, and this layer is of sentences")
        try:
            document = await run_in_threadpool(
                Document, body.document.xmi, body.typeSystem, asked.layer, asked.feature
            )
        except MissingExtraError as error:
            raise HTTPException(501, str(error)) from None
        by_token = asked.anchoringMode == "singleToken"
        for start in range(0, len(document.tokens), _AT_ONCE):
            part = document.tokens[start : start + _AT_ONCE]
            model, tagged = await predictor.tag(part)
            for place, each in enumerate(tagged, start):
                document.add(place, prediction(each, model.tags)["spans"], by_token)
        return reply({"document": await run_in_threadpool(document.to_xmi)})

    @routes.post("/train", responses=error_responses(501))
    async def train(token: Token) -> Response:
        """Say that INCEpTION cannot train the tagger."""
        raise HTTPException(
            501, "this tagger is trained by seqmix; untick `Trainable` in the recommender"
        )

    return routes
