"""Change the tags of a project: one transaction, in which nobody answers.

    change_tags(store, Wish("rename", "PER", ("Person",)))
    change_tags(store, Wish("split", "LOC", ("City", "River")))
    change_tags(store, Wish("undo"))

Answers are not rewritten; `store/tags/history.py` says what their tags mean now.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select

from seqmix.errors import StaleError, TagError
from seqmix.serve.settings import check_tags
from seqmix.serve.store.records import dumps
from seqmix.serve.store.schema import events, tag_changes
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagChange, TagHistory
from seqmix.serve.tags.looks import COLORS, LOOKS, Look, dressed, list_tags
from seqmix.serve.tags.review import write_split_doubts

KINDS = ("add", "rename", "merge", "split", "recolor", "retire", "undo")
_NEWEST_EVENT = select(func.coalesce(func.max(events.c.seq), 0))


@dataclass(frozen=True)
class Wish:
    """A change that somebody wants."""

    kind: str
    tag: str = ""
    into: tuple[str, ...] = ()
    color: int | None = None
    earlier: str = "none"  # for add: what earlier answers say of the tag, none or unknown


def change_tags(
    store: Store,
    wish: Wish,
    by: int | None = None,
    newest: int | None = None,
    now: float | None = None,
) -> TagChange:
    """Change the tags, or refuse to.

    `newest` is the last change that whoever wants this one has seen; after a later one, StaleError.
    """
    with store.writing() as conn:
        last = store.tag_history().newest
        if newest is not None and newest != last:
            raise StaleError("the tags have been changed meanwhile; look at them again", last)
        change, looks = planned(store, wish, by, time.time() if now is None else now)
        id = _insert(conn, change)
        store.set_tags([look.name for look in looks])
        store.write_note(LOOKS, {look.name: [look.color, look.key] for look in looks})
        write_split_doubts(store)
        return next(change for change in store.tag_history().changes if change.id == id)


def planned(
    store: Store, wish: Wish, by: int | None = None, at: float = 0.0
) -> tuple[TagChange, list[Look]]:
    """Return the change that a wish asks for, and the tags after it; refuse what makes no sense."""
    with store.reading() as conn:
        before, history = list_tags(store), store.tag_history()
        after = int(conn.execute(_NEWEST_EVENT).scalar_one())
    if wish.kind not in KINDS:
        raise TagError(f"a change of the tags is one of {', '.join(KINDS)}", text=wish.kind)
    details: dict[str, Any] = {
        "tags": [look.name for look in before],
        "looks": {look.name: [look.color, look.key] for look in before},
    }
    if wish.kind == "undo":
        undone = last_change(history)
        names, looks = undone.details["tags"], undone.details["looks"]
        change = TagChange(0, "undo", undone.tag, {**details, "undoes": undone.id}, by, at, after)
        return change, dressed(names, looks)
    wanted = {"into": list(wish.into), "color": wish.color, "earlier": wish.earlier}
    kept = {"add": ["earlier"], "recolor": ["color"], "retire": []}.get(wish.kind, ["into"])
    looks_after = _after(wish, before)
    check_tags([look.name for look in looks_after])
    details |= {key: wanted[key] for key in kept}
    return TagChange(0, wish.kind, wish.tag, details, by, at, after), looks_after


def last_change(history: TagHistory) -> TagChange:
    """Return the change that an undo takes back: the last that is not undone."""
    undone = history.undone
    for change in reversed(history.changes):
        if change.undoes is None and change.id not in undone and "tags" in change.details:
            return change
    raise TagError("there is no change of the tags to take back")


def _after(wish: Wish, before: Sequence[Look]) -> list[Look]:
    """Return the tags after a change that is no undo."""
    names, known = [look.name for look in before], {look.name: look for look in before}
    if wish.kind == "add":
        check_tags([*names, wish.tag])
        return _dressed([*names, wish.tag], known)
    if wish.tag not in known:
        raise TagError(f"this project has the tags {', '.join(names)}", text=wish.tag)
    at, look = names.index(wish.tag), known[wish.tag]
    if wish.kind == "recolor":
        if wish.color is None or not 0 <= wish.color < COLORS:
            raise TagError(f"a color is a number from 1 to {COLORS}", text=wish.tag)
        return [*before[:at], Look(look.name, wish.color, look.key), *before[at + 1 :]]
    rest = [*names[:at], *names[at + 1 :]]
    if wish.kind == "retire":
        if not rest:
            raise TagError("a project needs at least one tag; add another first", text=wish.tag)
        return _dressed(rest, known)
    _check_into(wish, names)
    if wish.kind == "merge":
        return _dressed(rest, known)
    new = [name for name in wish.into if name == wish.tag or name not in known]
    if new and wish.tag not in new:  # the first of them looks as the old one did
        known[new[0]] = Look(new[0], look.color, look.key)
    return _dressed([*names[:at], *new, *names[at + 1 :]], known)


def _check_into(wish: Wish, names: Sequence[str]) -> None:
    """Refuse a rename, merge or split into what it cannot be."""
    check_tags(wish.into)
    if wish.kind == "split":
        if len(wish.into) < 2:
            raise TagError("a tag is split into two tags or more", text=wish.tag)
        return
    (into,) = wish.into if len(wish.into) == 1 else ("",)
    if not into or into == wish.tag:
        raise TagError(f"a {wish.kind} needs another tag", text=wish.tag)
    if wish.kind == "rename" and into in names:
        raise TagError(f"there is a tag {into} already: merge {wish.tag} into it", text=into)
    if wish.kind == "merge" and into not in names:
        raise TagError(f"there is no tag {into}: rename {wish.tag} to it", text=into)


def _dressed(names: Sequence[str], known: Mapping[str, Look]) -> list[Look]:
    return dressed(names, {name: (look.color, look.key) for name, look in known.items()})


def _insert(conn: Connection, change: TagChange) -> int:
    values = {
        "kind": change.kind,
        "tag": change.tag,
        "details": dumps(change.details),
        "annotator_id": change.annotator_id,
        "at": change.at,
        "after": change.after,
    }
    (id,) = conn.execute(insert(tag_changes).values(values)).inserted_primary_key or (0,)
    return int(id)
