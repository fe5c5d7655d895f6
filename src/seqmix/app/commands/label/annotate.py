"""`seqmix annotate`: the page for people, with the trainer behind it."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqmix.app.console import say
from seqmix.errors import DataError

if TYPE_CHECKING:
    from seqmix.serve.project import Project
    from seqmix.serve.trainer.supervisor import Supervisor

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


Folder = Annotated[
    Path, typer.Argument(metavar="PROJECT", help="A project folder created by init.")
]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.")]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets the network in.")]
Browser = Annotated[bool, typer.Option(help="Open the page in a browser.")]
Train = Annotated[bool, typer.Option(help="Train in the background as answers come.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(help="Additional host name to accept, e.g. behind a proxy. Repeatable."),
]


def annotate(
    folder: Folder,
    port: Port = 8765,
    host: Host = "127.0.0.1",
    browser: Browser = True,
    train: Train = True,
    allow_host: AllowHost = None,
) -> None:
    """Label the sentences of a project on a page in the browser."""
    from seqmix.app.project_config import project_config
    from seqmix.serve.project import open_project
    from seqmix.serve.trainer.supervisor import trainer_of
    from seqmix.serve.web.http_server import listening

    with open_project(folder) as project:
        # refused here rather than in the background
        project_config(project.folder, project.settings)
        with listening(host, port) as listener:
            trainer = trainer_of(project.folder) if train else None
            _run(project, trainer, listener, host, allow_host or (), browser)
    say("stopped; every answer that was shown as saved is saved")


def _run(
    project: Project,
    trainer: Supervisor | None,
    listener: socket.socket,
    host: str,
    more_hosts: Sequence[str],
    browser: bool,
) -> None:
    """Print the link of this start and serve the page until it is stopped."""
    from seqmix.serve.servers import known_server
    from seqmix.serve.web.app import create_app
    from seqmix.serve.web.http_server import link_host, server
    from seqmix.serve.web.security import Hosts

    address = f"http://{link_host(host)}:{listener.getsockname()[1]}"
    token = secrets.token_urlsafe(32)
    link = f"{address}/login?token={token}"
    off = "off: this server was started with --no-train"
    app = create_app(
        project,
        (token, _owner(project.store)),
        Hosts.of(host, more_hosts),
        trainer=trainer.trouble if trainer is not None else lambda: off,
    )
    say(f"{project.settings.name}: {link}")
    if host not in _LOOPBACK:
        say(
            "others on the network can reach this page with their own link; "
            "the connection is not encrypted"
        )
    with known_server(project.store, address) as servers, browser_open(link if browser else None):
        if servers:
            say(
                f"this project already has another server, at {', '.join(servers)}: "
                "both share its answers, and one of them trains"
            )
        _serve(server(app, grace=3), listener, trainer)


def _serve(server: Any, listener: socket.socket, trainer: Any) -> None:
    """Run until Ctrl-C or SIGTERM, then end the trainer too."""
    from seqmix.serve.web.http_server import until_stopped

    with until_stopped():
        try:
            if trainer is not None:
                trainer.start()
            server.run(sockets=[listener])
        finally:
            if trainer is not None:
                trainer.stop()


def _owner(store: Any) -> Any:
    """Return the project's first admin, added now if there is none."""
    from seqmix.serve.store.annotators import add_annotator, find_annotator, list_annotators

    admin = next((annotator for annotator in list_annotators(store) if annotator.admin), None)
    if admin is None:
        try:
            name = getpass.getuser()
        except (KeyError, OSError):
            name = "owner"
        try:
            add_annotator(store, name, admin=True)
        except DataError:  # an annotator of that name is not an admin, or it cannot be shown
            name = f"owner-{secrets.token_hex(2)}"
            add_annotator(store, name, admin=True)
        admin = find_annotator(store, name)
    return admin


@contextmanager
def browser_open(link: str | None) -> Iterator[None]:
    """Open the browser through a file that only this user can read.

    Every user of the machine sees the arguments of a command.
    """
    if link is None:
        yield
        return
    handle, name = tempfile.mkstemp(prefix="seqmix-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        refresh = f'<meta http-equiv="refresh" content="0; url={escape(link)}">'
        file.write(f'<!doctype html><meta charset="utf-8">{refresh}')
    threading.Thread(target=lambda: webbrowser.open(Path(name).as_uri()), daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            Path(name).unlink()
