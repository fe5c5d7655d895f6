"""How tags look: a color and a key each, which stay when other tags come and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqmix.serve.store.store import Store

COLORS = 12
LOOKS = "tag_looks"  # note: {tag: [color, key]} since the first change
_KEYS = 9  # tags beyond these get letters from the page


@dataclass(frozen=True)
class Look:
    """A tag as people see it."""

    name: str
    color: int
    key: int | None = None


def list_tags(store: Store) -> list[Look]:
    """Return the tags of now, each with its color and key."""
    with store.reading():
        return dressed(store.read_tags(), store.read_note(LOOKS) or {})


def dressed(names: Sequence[str], known: Mapping[str, Sequence[Any]]) -> list[Look]:
    """Return tags with their known looks; a new one gets the first color and key that are free."""
    colors = {known[name][0] for name in names if name in known}
    keys = {known[name][1] for name in names if name in known}
    looks = []
    for at, name in enumerate(names):
        if name in known:
            looks.append(Look(name, *known[name]))
            continue
        color = next((n for n in range(COLORS) if n not in colors), at % COLORS)
        key = next((n for n in range(1, _KEYS + 1) if n not in keys), None)
        colors.add(color)
        keys.add(key)
        looks.append(Look(name, color, key))
    return looks
