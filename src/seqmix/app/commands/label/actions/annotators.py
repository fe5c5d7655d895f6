"""Actions on annotators: add one, renew or end a link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqmix.app.commands.label.actions.call import Call
from seqmix.app.console import emit, say
from seqmix.errors import ConfigError

if TYPE_CHECKING:
    from seqmix.serve.project import Project


def add(call: Call) -> None:
    """Add annotators and print their links."""
    from seqmix.serve.store.annotators import add_annotator

    with call.open() as project:
        links = [(name, add_annotator(project.store, name, call.admin)) for name in call.words]
    _print_links(call, links)


def renew(call: Call) -> None:
    """Print new links for annotators; the old ones end."""
    from seqmix.serve.store.annotators import renew_token

    with call.open() as project:
        ids = [annotator_id(project, name) for name in call.words]
        links = [
            (name, renew_token(project.store, id)) for name, id in zip(call.words, ids, strict=True)
        ]
    _print_links(call, links)


def revoke(call: Call) -> None:
    """Revoke the links of annotators; their answers stay."""
    from seqmix.serve.store.annotators import revoke_token

    with call.open() as project:
        for id in [annotator_id(project, name) for name in call.words]:
            revoke_token(project.store, id)
    for name in call.words:
        say(f"{name} can no longer log in")


def _print_links(call: Call, links: Sequence[tuple[str, str]]) -> None:
    page = (call.url or "http://127.0.0.1:8765").rstrip("/")
    for name, token in links:
        emit(f"{name}\t{page}/login?token={token}")
    say("links are shown only once; whoever has one answers under that name, so send it privately")


def annotator_id(project: Project, name: str) -> int:
    """Return the id of an annotator; refuse a name that nobody has."""
    from seqmix.serve.store.annotators import find_annotator, list_annotators

    annotator = find_annotator(project.store, name)
    if annotator is None:
        names = ", ".join(annotator.name for annotator in list_annotators(project.store))
        raise ConfigError(f"no annotator named {name!r}; this project has {names or 'none yet'}")
    return annotator.id
