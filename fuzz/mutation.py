"""Mutations that know what the readers read: lines, columns and JSON values.

Bytes alone rarely get past the first bracket.
"""

from __future__ import annotations

import json
import random
from typing import Any

_DEEP = "[" * 900 + "]" * 900
_WORDS = (
    "", " ", "\t", "\0", "\r", "\x85", "\u2028", "\ufeff", "\ud800", "\udc00",
    "é", "e\u0301", "🇳🇴", "👩‍🚀", "a" * 3000,
    "O", "_", "B-", "I-", "B-PER", "I-LOC", "S-X", "U-", "NOUN",
    "-DOCSTART-", "# sent_id = 1", "# text = a b", "1-2", "8.1",
    "SpaceAfter=No", "TokenRange=0:1", "&amp;", "<TEXT>", "</TEXT>", "T1\tPER 0 4\tLena",
    "0", "-1", "1e999", "9" * 40, "nan", "true", "null", "../..", "%00", "\\ud800",
    "{", "[", '"', ",",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 2**31, 2**63, 2**64, -(2**63), 10**30,
    0.5, -0.0, 1e308, float("nan"), float("inf"),
    [], {}, [[]], [{}], [None], {"": ""}, [0, 1], [1, 0], [0, 2**40], *_WORDS,
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The input with one to four things changed."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = _json(data, rng) if rng.random() < 0.5 else _lines(data, rng)
    return data


def _lines(data: bytes, rng: random.Random) -> bytes:
    rows = data.split(b"\n")
    at = rng.randrange(len(rows))
    other = rows[rng.randrange(len(rows))]
    word = rng.choice(_WORDS).encode("utf-8", "surrogatepass")
    match rng.randrange(8):
        case 0:
            rows.insert(at, other)
        case 1:
            del rows[at]
        case 2:
            rows[at] = word
        case 3:
            rows[at] = rows[at] * rng.choice((2, 3, 8))
        case 4:
            rows[at] = _column(rows[at], word, rng)
        case 5:
            place = rng.randrange(len(rows[at]) + 1)
            rows[at] = rows[at][:place] + word + rows[at][place:]
        case 6:
            place = rng.randrange(len(rows[at]) + 1)
            rows[at] = rows[at][:place] + rows[at][place + rng.randrange(1, 9) :]
        case _:
            rows[at : at + 1] = [rows[at]] * rng.choice((2, 3, 20))
    return b"\n".join(rows)


def _column(row: bytes, word: bytes, rng: random.Random) -> bytes:
    between = b"\t" if b"\t" in row else b"=" if b"=" in row else b" "
    columns = row.split(between)
    at = rng.randrange(len(columns))
    if rng.random() < 0.3:
        del columns[at]
    else:
        columns[at] = word
    return between.join(columns)


def _json(data: bytes, rng: random.Random) -> bytes:
    """One value of one JSON text in the input: the whole, or a line of it; else its lines."""
    rows = data.split(b"\n")
    order = [(0, len(rows)), *((i, i + 1) for i in rng.sample(range(len(rows)), min(4, len(rows))))]
    for first, last in order:
        try:
            value = json.loads(b"\n".join(rows[first:last]))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            spelled = json.dumps(_changed(value, rng), ensure_ascii=rng.random() < 0.5)
            if rng.random() < 0.02:
                spelled = spelled.replace("null", _DEEP, 1)
            return b"\n".join(
                [*rows[:first], spelled.encode("utf-8", "surrogatepass"), *rows[last:]]
            )
    return _lines(data, rng)


def _changed(value: Any, rng: random.Random) -> Any:
    """The value with something inside it replaced, taken out, doubled or moved."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return rng.choice(_VALUES)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = rng.choice(keys)
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    match rng.randrange(10):
        case 0:
            del changed[key]
        case 1 if isinstance(changed, list):
            changed *= rng.choice((2, 10))
        case 2 if isinstance(changed, dict):
            changed[rng.choice(_WORDS)] = changed[key]
        case 3:
            changed[key] = value[rng.choice(keys)]
        case 4 if isinstance(changed[key], int | float):
            changed[key] = changed[key] + rng.choice((-1, 1, 0.5, 1000))
        case 5 if isinstance(changed[key], str):
            place = rng.randrange(len(changed[key]) + 1)
            changed[key] = changed[key][:place] + rng.choice(_WORDS) + changed[key][place:]
        case _:
            changed[key] = _changed(changed[key], rng)
    return changed
