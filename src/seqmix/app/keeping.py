"""`seqmix project trust` and `backup`: what keeps a project's answers safe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.console import emit
from seqmix.data.formats.base import extra
from seqmix.errors import ConfigError


def trust(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A project whose store is in PostgreSQL.")]) -> None:
    """Say that you know the database a project has its store in; your password may go there."""
    extra("sqlalchemy", "serve", "a project")
    from seqmix.serve import remote
    from seqmix.serve.project import read_settings

    url = read_settings(folder).store
    if url is None:
        raise ConfigError(f"{folder} has its store in a file of its own; there is no database to trust")
    remote.trust(url)
    emit(f"{remote.place(url)} is known from now on")
