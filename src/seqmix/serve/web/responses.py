"""Answers as JSON, whatever stands in the text: half of a surrogate pair or a number that is none must not end in a 500."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

UNREACHABLE = "the store does not answer for the moment; what was shown as saved is saved"  # subtle: names no user, host or path


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(encoded(content), status, headers, media_type="application/json")


def encoded(content: Any) -> bytes:
    """JSON as UTF-8; NaN and infinity become null. Lone surrogates, which UTF-8 cannot hold, are escaped as JSON allows."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(
            _finite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(own) for key, own in value.items()}
    return [_finite(own) for own in value] if isinstance(value, list | tuple) else value
