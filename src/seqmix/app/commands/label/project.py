"""`seqmix project`: show or change a project, or do something with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from seqmix.app.commands.label.actions.call import Call
from seqmix.app.commands.label.actions.table import lines, run_action
from seqmix.app.config import parse_changes
from seqmix.app.console import emit
from seqmix.app.options import group, read_option
from seqmix.errors import ConfigError

_settings, _links = group("Settings"), group("Links")
_FIXED = {  # settings that --set leaves alone, and why
    "tags": "change them with the actions tag add, tag rename, …",
    "store": "it is chosen when the project is created",
}
_ACTIONS = "".join(f"\n\n• {escape(usage)}: {summary}" for usage, summary in lines())
Folder = Annotated[
    Path, typer.Argument(metavar="PROJECT", help="A project folder created by init.")
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ACTION]",
        help=f"What to do; without it, the settings and annotators are shown.{_ACTIONS}",
        show_default=False,
    ),
]
Change = Annotated[
    list[str] | None,
    _settings(
        "--set",
        help="Change a setting: batch=20, policy=mnlp, …; repeatable. "
        "A running page reads it when it is restarted.",
    ),
]
Admin = Annotated[
    bool, _links(help="With annotator add: they may adjudicate and add other annotators.")
]
Url = Annotated[
    str | None,
    _links(
        help="Address of the page in printed links, as annotate prints it; "
        "http://127.0.0.1:8765 by default."
    ),
]


def project(
    folder: Folder,
    action: Words = None,
    change: Change = None,
    admin: Admin = False,
    url: Url = None,
    read: Annotated[str, read_option("column", "unit")] = "",
) -> None:
    """Show or change a project's settings, tags and annotators, or back it up."""
    if action and change:
        raise ConfigError(f"choose one thing to do: --set and {action[0]} do not go together")
    if action:
        run_action(Call(folder, tuple(action), admin, url, read))
        return
    if admin or url is not None:
        raise ConfigError("--admin and --url belong to a new link: annotator add NAME")
    if read:
        raise ConfigError(
            "--read belongs to files: text add FILE, source add NAME predictions FILE"
        )
    if change:
        _change(folder, change)
    else:
        _show(folder)


def _show(folder: Path) -> None:
    """Print the settings and who annotates."""
    from seqmix.serve.project import open_project
    from seqmix.serve.store.current import work_by_annotator

    with open_project(folder) as project:
        emit(project.settings.toml().rstrip())
        work = work_by_annotator(project.store)
    for row in work:
        note = "\tadmin" if row.annotator.admin else ""
        bulk = f", {row.bulk} accepted in one go" if row.bulk else ""
        emit(f"{row.annotator.name}\t{row.labeled} labeled{bulk}{note}")


def _change(folder: Path, changes: list[str]) -> None:
    """Write new settings."""
    from seqmix.app.project_config import project_config
    from seqmix.app.taggers import with_start
    from seqmix.serve.settings import change_settings, read_settings

    before = read_settings(folder)
    values = parse_changes(changes)
    for key in values.keys() & _FIXED.keys():
        raise ConfigError(f"--set does not change {key}: {_FIXED[key]}")
    if values.get("start") is not None:
        values["start"] = with_start(replace(before, **values)).start
    after = change_settings(folder, lambda settings: project_config(folder, settings), **values)
    emit(after.toml().rstrip())
