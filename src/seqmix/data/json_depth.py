"""How deep JSON may be nested: far less than what Python's recursion bears, so that whoever reads, writes or shows a value can."""

from __future__ import annotations

from typing import Any

MOST = 100  # levels; what is read and written here has a dozen


def is_deep(value: Any) -> bool:
    """Whether lists and objects are nested more than 100 levels."""
    layer = [value]
    for _ in range(MOST + 1):
        layer = [child for one in layer for child in _inside(one) if isinstance(child, dict | list)]
        if not layer:
            return False
    return True


def _inside(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
