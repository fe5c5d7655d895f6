"""An extension of griffe: show the doctests of docstrings as code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1 *\S.*)*", flags=re.M)


def fenced(text: str) -> str:
    """Return a docstring with each of its doctests in a code block."""
    return _DOCTEST.sub(lambda test: f"{test[1]}```pycon\n{test[0]}\n{test[1]}```", text)


class DoctestBlocks(griffe.Extension):
    """Put the doctests of every docstring into code blocks."""

    def on_object(self, *, obj: griffe.Object, **arguments: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
