"""JSON responses for any text: a lone surrogate or NaN must not end in a 500."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

# names no user, host or path of the database
UNREACHABLE = "the store does not answer at the moment; what was shown as saved is saved"


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(encoded(content), status, headers, media_type="application/json")


def encoded(content: Any) -> bytes:
    """Return JSON in UTF-8; NaN and infinity become null, lone surrogates are escaped."""
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
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
