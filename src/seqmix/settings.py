"""Settings are frozen values that check themselves: in Python, and as the sections of a config.

@settings
class Mixing:
    window: Count = 5
    \"\"\"Tokens in a window.\"\"\"

Mixing(window=0)    # ConfigError: window must be at least 1; got 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform, get_origin

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from seqmix.errors import ConfigError

T = TypeVar("T")
Number = TypeVar("Number", int, float)
Count = Annotated[int, Field(ge=1, le=2**31)]
Natural = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, le=100)]
Positive = Annotated[float, Field(gt=0, le=1e6)]
Share = Annotated[float, Field(ge=0, le=1)]
STRICT = ConfigDict(
    extra="forbid",
    frozen=True,
    allow_inf_nan=False,
    arbitrary_types_allowed=True,
    use_attribute_docstrings=True,
)
_MUST_BE = {
    "float_type": "a number", "float_parsing": "a number", "finite_number": "a finite number",
    "int_type": "a whole number", "int_parsing": "a whole number",
    "int_from_float": "a whole number", "int_parsing_size": "a smaller number",
    "bool_type": "true or false", "bool_parsing": "true or false", "string_type": "text",
    "list_type": "a list", "tuple_type": "a list", "dict_type": "a section of keys",
    "model_type": "a section of keys", "dataclass_type": "a section of keys",
    "literal_error": "{expected}",
    "greater_than": "above {gt:g}", "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}", "less_than_equal": "at most {le:.15g}",
    "too_short": "a list with at least {min_length} in it",
}  # fmt: skip
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING = ("missing", "missing_argument")


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def settings(cls: type[T]) -> type[T]:
    """Make a class of annotated defaults a frozen dataclass that refuses values of wrong types."""
    checked: Any = dataclass(config=STRICT)(cls)
    check = checked.__init__

    @wraps(check)
    def init(self: Any, *args: Any, **values: Any) -> None:
        try:
            check(self, *args, **values)
        except ValidationError as error:
            raise ConfigError(explain(error, checked)) from error

    checked.__init__ = init
    return checked  # type: ignore[no-any-return]


def keys_of(section: Any) -> dict[str, FieldInfo]:
    """Return the keys of a section by the names that files use."""
    fields: Mapping[str, FieldInfo] = getattr(section, "__pydantic_fields__", {})
    return {field.alias or name: field for name, field in fields.items()}


def described_keys(section: Any) -> Iterator[tuple[str, FieldInfo, str]]:
    """Yield the keys of a section, inherited ones too, each with its field and its sentence."""
    for name, field in keys_of(section).items():
        sentences = (keys_of(parent).get(name) for parent in section.__mro__)
        sentence = next((f.description for f in sentences if f and f.description), "")
        yield name, field, " ".join(sentence.split())


def explain(error: ValidationError, section: Any) -> str:
    """Return the first mistake in one line: the key, what it must be, what was given."""
    errors = error.errors()
    keys = [_key_of(section, each["loc"]) for each in errors]
    pairs = list(zip(errors, keys, strict=True))
    first = next((each for each, key in pairs if key == keys[0] and _fits(each)), errors[0])
    if first["type"] in _UNKNOWN:
        return _unknown_key(section, [str(part) for part in first["loc"]])
    if first["type"] in _MISSING:
        return f"{shown_key(first['loc'])} is missing"
    key = shown_key(keys[0])
    if first["type"] not in _MUST_BE:
        return ": ".join(filter(None, (key, first["msg"].removeprefix("Value error, "))))
    must = _MUST_BE[first["type"]].format(**first.get("ctx", {}))
    return f"{key} must be {must}; got {_quote(first['input'])}"


def shown_key(parts: Sequence[object]) -> str:
    """Return a key as people write it, escaped where it would break the line or the terminal."""
    key = ".".join(str(part) for part in parts)
    return key[:80] if key.isprintable() else repr(key[:80])


def _unknown_key(section: Any, parts: list[str]) -> str:
    *above, last = parts
    names = list(keys_of(_section_at(section, above)))
    near = get_close_matches(last, names, n=1)
    if near:
        hint = f"; did you mean {'.'.join([*above, near[0]])}?"
    else:
        hint = f"; there are {', '.join(names)}" if names else ""
    return f"{shown_key(parts)}: there is no such key{hint}"


def _fits(error: Any) -> bool:
    """Tell whether an error is about the given shape, where a value may be a number or a list."""
    alone = isinstance(error["input"], list) and error["type"] in ("float_type", "int_type")
    return error["type"] not in ("list_type", "is_instance_of") and not alone


def _key_of(section: Any, parts: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the keys of an error's place without the names pydantic gives to parts of a union."""
    kept: list[str] = []
    for part in parts:
        here = _section_at(section, kept)
        if get_origin(here) is not dict and str(part) not in keys_of(here):
            break
        kept.append(str(part))
    return tuple(kept)


def _section_at(section: Any, above: Sequence[str]) -> Any:
    for name in above:
        field = keys_of(section).get(name)
        section = None if field is None else field.annotation
    return section


def _quote(value: object) -> str:
    if isinstance(value, Mapping):
        return "a section"
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


def at(schedule: Number | Sequence[Number], round: int) -> Number:
    """Return the value for a round, counted from 0: a number is for all, a list's last stays.

    >>> at([1000, 2000, 2000, 4000], 5)
    4000
    """
    if isinstance(schedule, int | float):
        return schedule
    return schedule[min(round, len(schedule) - 1)]
