"""Errors of the applications as responses: one sentence, `{"error": …}`."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from seqmix.errors import (
    ConfigError,
    DataError,
    ModelError,
    NotFoundError,
    StaleError,
    StoreError,
)
from seqmix.serve.web.requests import Error
from seqmix.serve.web.responses import UNREACHABLE, reply

_MESSAGES = {
    404: "there is nothing here",
    405: "this address does not accept this method; see /openapi.json",
}
_STATUS = {
    NotFoundError: 404,
    StaleError: 409,
    DataError: 422,
    ConfigError: 422,  # an address that is none, a prompt without a place for the text
    ModelError: 422,  # a text that the model's tokenizer cannot cut
    StoreError: 503,
}
_log = logging.getLogger("seqmix.serve")


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of an application as its OpenAPI schema lists them."""
    return {status: {"model": Error} for status in statuses}


def add_error_handlers(app: FastAPI) -> None:
    """Report every error in the same shape."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)
    for kind in _STATUS:
        app.add_exception_handler(kind, _known_error)


async def _invalid(request: Request, error: Exception) -> Response:
    """Name the first invalid value and its place, without repeating it: it may be anything."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    parts = (str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    # which member of a union was meant is in parentheses
    place = ".".join(part for part in parts if not part.startswith("("))[:100]
    message = "the body is not JSON" if first["type"] == "json_invalid" else str(first["msg"])
    return reply(
        {"error": f"{place}: {message}" if place and first["type"] != "json_invalid" else message},
        422,
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return reply(
        {"error": _MESSAGES.get(error.status_code, str(error.detail))},
        error.status_code,
        error.headers,
    )


async def _known_error(request: Request, error: Exception) -> Response:
    """Return the message of an error of seqmix; what the database reports goes to the log only."""
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    if status == 503:
        _log.error("%s", error)
    return reply({"error": UNREACHABLE if status == 503 else str(error)}, status)


async def _unexpected(request: Request, error: Exception) -> Response:
    """Hide an unexpected error, which Starlette logs, from the client."""
    return reply({"error": "the server has a bug here, which its log describes"}, 500)
