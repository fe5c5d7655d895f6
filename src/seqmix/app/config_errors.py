"""What pydantic refuses, in one plain line: the key, what was given, and what it must be."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

_MUST_BE = {
    "float_type": "a number", "float_parsing": "a number", "finite_number": "a finite number", "int_type": "a whole number",
    "int_parsing": "a whole number", "int_from_float": "a whole number", "int_parsing_size": "a smaller number",
    "bool_type": "true or false", "bool_parsing": "true or false", "string_type": "text", "list_type": "a list",
    "model_type": "a section of keys", "dict_type": "a section of keys", "missing": "given", "literal_error": "{expected}",
    "greater_than": "above {gt:g}", "greater_than_equal": "at least {ge:g}", "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:.15g}", "too_short": "a list with at least {min_length} in it",
}  # fmt: skip


def refusal(error: ValidationError, model: type[BaseModel]) -> str:
    """The first thing that is wrong; of a value that may be one or a list, what fits what was given."""
    errors = error.errors()
    known = [_known(model, one["loc"]) for one in errors]
    first = next(
        (one for one, key in zip(errors, known, strict=True) if key == known[0] and _fits(one)),
        errors[0],
    )
    key = known[0]
    if first["type"] == "extra_forbidden":
        *above, last = (str(part) for part in first["loc"])
        near = get_close_matches(last, _fields(model, above), n=1)
        return f"{shown_key(first['loc'])}: there is no such key" + (
            f"; did you mean {'.'.join([*above, near[0]])}?" if near else ""
        )
    if first["type"] not in _MUST_BE:
        return f"{shown_key(key) or 'config'}: {first['msg'].removeprefix('Value error, ')}"
    must = _MUST_BE[first["type"]].format(**first.get("ctx", {}))
    return f"{shown_key(key)} is {_shown(first['input'])}; it must be {must}"


def shown_key(parts: Any) -> str:
    """A key as people write it; one that would break the line, or the terminal, is escaped."""
    key = ".".join(str(part) for part in parts)
    return key[:80] if key.isprintable() else repr(key[:80])


def _fits(error: Any) -> bool:
    """Whether it is about what was given, not about the other shape the value might have had."""
    alone = isinstance(error["input"], list) and error["type"] in ("float_type", "int_type")
    return error["type"] != "list_type" and not alone


def _known(model: type[BaseModel], parts: tuple[int | str, ...]) -> tuple[str, ...]:
    """The keys of a place; what pydantic calls the branches of a union is left off."""
    kept: list[str] = []
    for part in parts:
        if str(part) not in _fields(model, kept):
            break
        kept.append(str(part))
    return tuple(kept)


def _fields(model: type[BaseModel], above: list[str]) -> list[str]:
    """The keys there are under these."""
    found: Any = model
    for name in above:
        field = found.model_fields.get(name)
        found = None if field is None else field.annotation
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            return []
    return list(found.model_fields)


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "a section"
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
