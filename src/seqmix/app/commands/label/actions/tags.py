"""Actions on the tags of a project."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from seqmix.app.commands.label.actions.call import Call
from seqmix.app.console import emit, say
from seqmix.errors import ConfigError

if TYPE_CHECKING:
    from seqmix.serve.project import Project

_YES = "yes"


def add(call: Call) -> None:
    """Add a span type; open pages show it within seconds."""
    from seqmix.serve.settings import read_settings
    from seqmix.serve.tags.changes import Wish
    from seqmix.serve.tags.in_settings import change_project_tags
    from seqmix.serve.tags.preview import preview

    name, *rest = call.words
    with call.open() as project:
        say(f"tag add {name}: {preview(project.store, Wish('add', name)).in_words()}")
        wish = Wish("add", name, earlier=_earlier(project, name, rest[0] if rest else None))
        change_project_tags(call.folder, project.store, wish)
    emit(read_settings(call.folder).toml().rstrip())


def show(call: Call) -> None:
    """Print the tags: color, key, and how many spans of the answers have it."""
    from seqmix.serve.tags.looks import list_tags
    from seqmix.serve.tags.preview import tag_counts

    with call.open() as project:
        counts = tag_counts(project.store)
        for look in list_tags(project.store):
            key = f"key {look.key}" if look.key else "no digit"
            emit(f"{look.name}\tcolor {look.color + 1}\t{key}\t{counts.get(look.name, 0)} spans")


def rename(call: Call) -> None:
    """Rename a tag."""
    _change(call, "rename")


def merge(call: Call) -> None:
    """Merge a tag into another."""
    _change(call, "merge")


def split(call: Call) -> None:
    """Split a tag; its spans wait until somebody chooses."""
    _change(call, "split")


def retire(call: Call) -> None:
    """Retire a tag; the history keeps its spans."""
    _change(call, "retire")


def undo(call: Call) -> None:
    """Take back the last change of the tags."""
    _change(call, "undo")


def recolor(call: Call) -> None:
    """Give a tag another color."""
    from seqmix.serve.tags.changes import Wish
    from seqmix.serve.tags.in_settings import change_project_tags

    name, number = call.words
    color = int(number) - 1 if number.isdecimal() and len(number) < 4 else None
    with call.open() as project:
        change_project_tags(call.folder, project.store, Wish("recolor", name, color=color))


def _change(call: Call, kind: str) -> None:
    """Say what a change touches, and make it once that is confirmed."""
    from seqmix.serve.tags.changes import Wish
    from seqmix.serve.tags.in_settings import change_project_tags
    from seqmix.serve.tags.preview import preview

    confirmed = bool(call.words) and call.words[-1] == _YES
    words = call.words[:-1] if confirmed else call.words
    wish = Wish(kind, words[0] if words else "", words[1:])
    typed = " ".join(("tag", kind, *words))
    with call.open() as project:
        newest = project.store.tag_history().newest
        say(f"{typed}: {preview(project.store, wish).in_words()}")
        if not confirmed and sys.stdin.isatty():
            confirmed = typer.confirm("Change the tags?", err=True)
        if not confirmed:
            raise ConfigError(f"nothing is changed yet: {typed} {_YES} does it")
        change_project_tags(call.folder, project.store, wish, newest=newest)
        emit(",".join(project.store.read_tags()))


def _earlier(project: Project, name: str, earlier: str | None) -> str:
    """Return what earlier answers mean for a new tag: none or unknown."""
    from seqmix.serve.store.current import read_counts

    if earlier not in (None, "none", "unknown"):
        raise ConfigError(
            f"what earlier answers mean for {name} must be none or unknown; got {earlier!r}"
        )
    counts = read_counts(project.store)
    labeled = counts.labeled + counts.seed
    if labeled and earlier is None and sys.stdin.isatty():
        say(f"{labeled} sentences are labeled without {name}: is there certainly none?")
        question = "yes: there is none; no: nobody looked for it"
        earlier = "none" if typer.confirm(question, err=True) else "unknown"
    if labeled and earlier is None:
        raise ConfigError(
            f"{labeled} sentences are labeled already: tag add {name} none says that there is "
            f"no {name} in them, tag add {name} unknown that nobody looked for it"
        )
    return earlier or "none"
