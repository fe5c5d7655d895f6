"""Requests and responses of the prediction server."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, StringConstraints, Tag

from seqmix.serve.web.requests import StrictBody

SENTENCES = 1000  # of one request
Text = Annotated[str, StringConstraints(max_length=20_000)]
Token = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
# Without fail_fast, a body of wrong values would become a million error messages.
Tokens = Annotated[list[Token], Field(max_length=10_000, fail_fast=True)]
Texts = Annotated[list[Text], Field(max_length=SENTENCES, fail_fast=True)]
TokenLists = Annotated[list[Tokens], Field(min_length=1, max_length=SENTENCES, fail_fast=True)]


def _whole(value: Any) -> Any:
    """Return 2.0 as 2: in JSON they are the same number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shape(value: Any) -> str:
    """Return the tag of a shape; errors leave out tags in parentheses."""
    return "(many)" if isinstance(value, list) else "(one)"


def _shape_of_tokens(value: Any) -> str:
    is_many = isinstance(value, list) and value and isinstance(value[0], list)
    return "(many)" if is_many else "(one)"


OneOrMoreTexts = Annotated[
    Annotated[Text, Tag("(one)")] | Annotated[Texts, Tag("(many)")], Discriminator(_shape)
]
OneOrMoreTokens = Annotated[
    Annotated[Tokens, Tag("(one)")] | Annotated[TokenLists, Tag("(many)")],
    Discriminator(_shape_of_tokens),
]
Best = Annotated[
    int,
    Field(ge=1, le=10, description="How many taggings of each sentence."),
    BeforeValidator(_whole),
]


class TextBody(StrictBody):
    """A text, or several; each is tagged as one sentence."""

    text: OneOrMoreTexts
    n: Best = 1


class TokensBody(StrictBody):
    """The tokens of a sentence, or of several."""

    tokens: OneOrMoreTokens
    n: Best = 1


def _kind(body: Any) -> str:
    return "(tokens)" if isinstance(body, dict) and "tokens" in body else "(text)"


PredictBody = Annotated[
    Annotated[TextBody, Tag("(text)")] | Annotated[TokensBody, Tag("(tokens)")],
    Discriminator(_kind),
]


class Span(BaseModel):
    """A span, by characters of the text and by tokens, both up to but not including the end."""

    start: int
    end: int
    token_start: int
    token_end: int
    label: str
    text: str
    probability: float = Field(description="The probability of its least certain token.")


class Alternative(BaseModel):
    """One way to tag a sentence."""

    probability: float
    spans: list[Span]


class Prediction(Alternative):
    """The best way to tag a sentence; `alternatives` has the others, if n is above 1."""

    text: str = Field(description="The text; tokens are joined by single spaces.")
    tokens: list[str]
    alternatives: list[Alternative] = []


class Predictions(BaseModel):
    """One prediction for each sentence, in order."""

    model: str = Field(description="Version of the model: a digest of its files.")
    predictions: list[Prediction]


class Parameters(StrictBody):
    """Parameters of Hugging Face's task token-classification."""

    aggregation_strategy: Literal["none", "simple", "first", "average", "max"] | None = None
    ignore_labels: Annotated[list[Token], Field(max_length=2000, fail_fast=True)] | None = None
    stride: Annotated[int, Field(ge=0, le=2**31), BeforeValidator(_whole)] | None = Field(
        None, description="Not used: long texts are read in windows anyway."
    )


class InferenceBody(StrictBody):
    """A request as Hugging Face's inference endpoints take it."""

    inputs: OneOrMoreTexts
    parameters: Parameters | None = None
    options: dict[str, bool] | None = Field(None, description="Not used.")


class Entity(BaseModel):
    """An entity as Hugging Face's inference endpoints give it."""

    entity_group: str | None = None
    entity: str | None = Field(None, description="With aggregation_strategy none: a token's tag.")
    index: int | None = None
    score: float
    word: str
    start: int
    end: int


class Health(BaseModel):
    """The state of the server."""

    status: Literal["ok", "stale"] = Field(description="stale: a newer model cannot be loaded.")
    model: str
    loaded_at: float
    labels: list[str]
    waiting: int = Field(description="Sentences waiting.")
    trouble: str | None = None
