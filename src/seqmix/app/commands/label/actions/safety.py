"""Actions that keep a project safe: a backup, and trust in its database."""

from __future__ import annotations

from pathlib import Path

from seqmix.app.commands.label.actions.call import Call
from seqmix.app.console import emit
from seqmix.errors import ConfigError


def backup(call: Call) -> None:
    """Copy the project to a new folder, even while its page runs."""
    from seqmix.serve.backup import back_up
    from seqmix.serve.store.current import read_counts

    out = Path(call.words[0])
    with call.open() as project:
        events = back_up(project, out)
        counts = read_counts(project.store)
    emit(
        f"{out}: {counts.sentences + counts.seed} sentences and all answers up to event {events}; "
        "it is a project and opens like the original"
    )


def trust(call: Call) -> None:
    """Trust the PostgreSQL database of the project with the user's password."""
    from seqmix.serve.settings import read_settings
    from seqmix.serve.store.database import postgresql

    url = read_settings(call.folder).store
    if url is None:
        raise ConfigError(
            f"{call.folder} keeps its answers in its folder: it has no database to trust"
        )
    postgresql.trust(url)
    emit(f"{postgresql.host_and_port(url)} is trusted from now on")
