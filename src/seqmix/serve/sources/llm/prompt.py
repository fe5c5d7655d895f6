"""What an endpoint is asked about a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from seqmix.data.sentence import Sentence
from seqmix.serve.sources.llm.endpoint import Endpoint

_FIELDS = re.compile(r"\{(tags|guidelines|text)\}")
_MOST_ANSWER = 4096  # tokens of an answer
FORMATS = ("json_schema", "json_object", "text")  # how an answer is asked for, the strictest first


def filled(template: str, sentence: Sentence, tags: Sequence[str], guidelines: str) -> str:
    """Return a prompt with its fields; what is filled in is never filled in again."""
    values = {"tags": ", ".join(tags), "guidelines": guidelines, "text": sentence.located()[0]}
    return _FIELDS.sub(lambda field: values[field[1]], template)


def body(
    endpoint: Endpoint, sentence: Sentence, tags: Sequence[str], guidelines: str, format: str
) -> dict[str, Any]:
    """Return the request for a sentence."""
    content = filled(endpoint.prompt, sentence, tags, guidelines)
    request: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": content}],
        "temperature": 0,
        "max_tokens": min(_MOST_ANSWER, 128 + 24 * len(sentence)),
        "stream": False,
    }
    if format == "json_schema":
        schema = {"name": "spans", "strict": True, "schema": _schema(tags)}
        request["response_format"] = {"type": format, "json_schema": schema}
    elif format == "json_object":
        request["response_format"] = {"type": format, "schema": _schema(tags)}
    return request


def _schema(tags: Sequence[str]) -> dict[str, Any]:
    span = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "tag": {"enum": list(tags)}},
        "required": ["text", "tag"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"spans": {"type": "array", "items": span}},
        "required": ["spans"],
        "additionalProperties": False,
    }
