"""Patterns with which a database prefilters text that is stored as JSON in ASCII.

A pattern lets too much through and never too little; Python then looks at what is left.
"""

from __future__ import annotations

import json

from sqlalchemy import ColumnElement, Connection

_ESCAPE = "!"  # not the backslash, which begins every character that is not ASCII


def like(conn: Connection, column: ColumnElement[str], pattern: str) -> ColumnElement[bool]:
    """Return the condition that a column contains a pattern, in any case."""
    inside = f"%{pattern}%"
    if conn.dialect.name == "sqlite":  # its LIKE ignores the case of ASCII
        return column.like(inside, escape=_ESCAPE)
    return column.ilike(inside, escape=_ESCAPE)


def text_pattern(text: str) -> str:
    """Return the pattern of some words with anything between them."""
    return "%".join(pattern(word) for word in text.split())


def pattern(text: str) -> str:
    """Return the pattern of a text in JSON, whatever the case of its letters."""
    return "".join(_of_character(character) for character in text)


def _of_character(character: str) -> str:
    """Return a pattern for one character: "é" is \\u00_9, which É matches too."""
    if character.isascii():
        return _escaped(json.dumps(character)[1:-1])
    variants = {character, character.lower(), character.upper()}
    written = [json.dumps(variant)[1:-1] for variant in variants]
    if len({len(text) for text in written}) > 1:
        return "%"
    same = (set(letters) for letters in zip(*written, strict=True))
    return "".join(_escaped(letters.pop()) if len(letters) == 1 else "_" for letters in same)


def _escaped(text: str) -> str:
    return "".join(_ESCAPE + letter if letter in "%_!" else letter for letter in text)
