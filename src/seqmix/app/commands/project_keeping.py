"""`seqmix project trust` and `backup`: what keeps a project's answers safe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.console import emit
from seqmix.errors import ConfigError


def trust(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A project whose store is in PostgreSQL.")
    ],
) -> None:
    """Say that you know the database a project has its store in; your password may go there."""
    from seqmix.serve.project import read_settings
    from seqmix.serve.store import postgresql as remote

    url = read_settings(folder).store
    if url is None:
        raise ConfigError(
            f"{folder} has its store in a file of its own; there is no database to trust"
        )
    remote.trust(url)
    emit(f"{remote.place(url)} is known from now on")


def backup(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="A project folder made by init; people may be annotating it."
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="The new folder to write, a project too: open it to restore."
        ),
    ],
) -> None:
    """Copy a project, answers and models, while its page runs or not."""
    from seqmix.serve.backup import back_up
    from seqmix.serve.project import open_project

    with open_project(folder) as own:
        events = back_up(own, out)
        sentences = own.store.count()
    emit(
        f"{out}: {sentences} sentences and all answers up to event {events}; it is a project like the first, and opens like one"
    )
