"""`seqmix project`: settings, annotators, backup and trust of a project."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqmix.app.config import parse_changes
from seqmix.app.console import emit, say
from seqmix.app.options import group
from seqmix.errors import ConfigError

if TYPE_CHECKING:
    from seqmix.serve.project import Project

_settings, _people, _safety = group("Settings"), group("Annotators"), group("Safety")
_FIXED = {  # settings that --set leaves alone, and why
    "tags": "add one with --add-tag",
    "store": "it is chosen when the project is created",
}
Folder = Annotated[
    Path, typer.Argument(metavar="PROJECT", help="A project folder created by init.")
]
Change = Annotated[
    list[str] | None,
    _settings(
        "--set",
        help="Change a setting: batch=20, policy=mnlp, …; repeatable. "
        "A running page reads it when it is restarted.",
    ),
]
AddTag = Annotated[
    list[str] | None,
    _settings(help="Add a span type; open pages show it within seconds. Repeatable."),
]
Earlier = Annotated[
    str | None,
    _settings(
        help="With --add-tag, what earlier answers mean for the new tag: "
        "none (there is none in those sentences) or unknown (nobody looked for it)."
    ),
]
Add = Annotated[
    list[str] | None,
    _people(help="Add an annotator and print their link once. Repeatable."),
]
Admin = Annotated[bool, _people(help="With --add: they may adjudicate and add other annotators.")]
Renew = Annotated[
    list[str] | None, _people(help="Print a new link for an annotator; the old one ends.")
]
Revoke = Annotated[list[str] | None, _people(help="End an annotator's link; their answers stay.")]
Url = Annotated[
    str | None,
    _people(
        help="Address of the page in printed links, as annotate prints it; "
        "http://127.0.0.1:8765 by default."
    ),
]
Backup = Annotated[
    Path | None,
    _safety(help="Copy the project to this new folder, even while its page runs."),
]
Trust = Annotated[
    bool,
    _safety(help="Trust the PostgreSQL database of this project with your password."),
]


def project(
    folder: Folder,
    change: Change = None,
    add_tag: AddTag = None,
    earlier: Earlier = None,
    add: Add = None,
    admin: Admin = False,
    renew: Renew = None,
    revoke: Revoke = None,
    url: Url = None,
    backup: Backup = None,
    trust: Trust = False,
) -> None:
    """Show or change a project's settings and annotators, or back it up."""
    if earlier is not None and not add_tag:
        raise ConfigError("--earlier says what earlier answers mean for a new tag: give --add-tag")
    if (admin and not add) or (url is not None and not (add or renew)):
        raise ConfigError("--admin and --url belong to a new link: give --add NAME")
    actions: dict[str, Callable[[], None]] = {}
    if change or add_tag:
        actions["--set or --add-tag"] = partial(_change, folder, change, add_tag, earlier)
    if add or renew or revoke:
        actions["--add, --renew or --revoke"] = partial(
            _annotators, folder, add or (), admin, renew or (), revoke or (), url
        )
    if backup is not None:
        actions["--backup"] = partial(_back_up, folder, backup)
    if trust:
        actions["--trust"] = partial(_trust, folder)
    if len(actions) > 1:
        raise ConfigError(f"choose one thing to do: {' and '.join(actions)} do not go together")
    (action,) = actions.values() or (partial(_show, folder),)
    action()


def _show(folder: Path) -> None:
    """Print the settings and who annotates."""
    from seqmix.serve.store.current import work_by_annotator

    with _open(folder) as project:
        emit(project.settings.toml().rstrip())
        work = work_by_annotator(project.store)
    for row in work:
        note = "\tadmin" if row.annotator.admin else ""
        emit(f"{row.annotator.name}\t{row.labeled} labeled{note}")


def _change(
    folder: Path, changes: list[str] | None, tags: list[str] | None, earlier: str | None
) -> None:
    """Write new settings, and what earlier answers mean for new tags."""
    from seqmix.app.project_config import project_config
    from seqmix.serve.settings import change_settings, check_tags, read_settings

    before = read_settings(folder)
    values = parse_changes(changes)
    for key in values.keys() & _FIXED.keys():
        raise ConfigError(f"--set does not change {key}: {_FIXED[key]}")
    if tags:
        check_tags((*before.tags, *tags))
        _settle_earlier(folder, tags, earlier)
        values["tags"] = (*before.tags, *tags)
    after = change_settings(folder, lambda settings: project_config(folder, settings), **values)
    if tags:
        _open(folder).close()  # the store takes the tags over, and running servers look there
    emit(after.toml().rstrip())


def _settle_earlier(folder: Path, tags: list[str], earlier: str | None) -> None:
    """Record what earlier answers mean; before the tags, so that a kill leaves none without it."""
    from seqmix.serve.store.current import read_counts
    from seqmix.serve.store.sentences import mark_tags_unknown

    if earlier not in (None, "none", "unknown"):
        raise ConfigError(f"--earlier must be none or unknown; got {earlier!r}")
    with _open(folder) as project:
        counts, names = read_counts(project.store), ", ".join(tags)
        labeled = counts.labeled + counts.seed
        if not labeled:
            return
        if earlier is None and sys.stdin.isatty():
            say(f"{labeled} sentences are labeled without {names}: is there certainly none?")
            question = "yes: there is none; no: nobody looked for it"
            earlier = "none" if typer.confirm(question, err=True) else "unknown"
        if earlier is None:
            raise ConfigError(
                f"{labeled} sentences are labeled already: --earlier none says that there is no "
                f"{names} in them, --earlier unknown that nobody looked for it"
            )
        if earlier == "unknown":
            mark_tags_unknown(project.store, tags)


def _annotators(
    folder: Path,
    add: Sequence[str],
    admin: bool,
    renew: Sequence[str],
    revoke: Sequence[str],
    url: str | None,
) -> None:
    """Add annotators, renew and end links."""
    from seqmix.serve.store.annotators import add_annotator, renew_token, revoke_token

    with _open(folder) as project:
        store = project.store
        links = [(name, add_annotator(store, name, admin)) for name in add]
        links += [(name, renew_token(store, _annotator_id(project, name))) for name in renew]
        for name in revoke:
            revoke_token(store, _annotator_id(project, name))
            say(f"{name} can no longer log in")
    page = (url or "http://127.0.0.1:8765").rstrip("/")
    for name, token in links:
        emit(f"{name}\t{page}/login?token={token}")
    if links:
        say("links are shown only once; whoever has one answers in that name, so send it privately")


def _annotator_id(project: Project, name: str) -> int:
    from seqmix.serve.store.annotators import find_annotator, list_annotators

    annotator = find_annotator(project.store, name)
    if annotator is None:
        names = ", ".join(annotator.name for annotator in list_annotators(project.store))
        raise ConfigError(f"no annotator named {name!r}; this project has {names or 'none yet'}")
    return annotator.id


def _back_up(folder: Path, out: Path) -> None:
    from seqmix.serve.backup import back_up
    from seqmix.serve.store.current import read_counts

    with _open(folder) as project:
        events = back_up(project, out)
        counts = read_counts(project.store)
    emit(
        f"{out}: {counts.sentences + counts.seed} sentences and all answers up to event {events}; "
        "it is a project and opens like the original"
    )


def _trust(folder: Path) -> None:
    from seqmix.serve.settings import read_settings
    from seqmix.serve.store import postgresql

    url = read_settings(folder).store
    if url is None:
        raise ConfigError(f"{folder} keeps its answers in its folder: it has no database to trust")
    postgresql.trust(url)
    emit(f"{postgresql.host_and_port(url)} is trusted from now on")


def _open(folder: Path) -> Project:
    from seqmix.serve.project import open_project

    return open_project(folder)
