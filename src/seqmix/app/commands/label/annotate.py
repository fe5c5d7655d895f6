"""`seqmix annotate`: the page for people, with the trainer behind it."""

from __future__ import annotations

import getpass
import os
import secrets
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import say
from seqmix.errors import DataError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def annotate(
    project: Annotated[Path, typer.Argument(help="A project folder made by init.")],
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0 for any that is free.")
    ] = 8765,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 lets the network in.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    train: Annotated[bool, typer.Option(help="Train in the background as answers come.")] = True,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A further name this server goes by, as behind a proxy."),
    ] = None,
) -> None:
    """Label the sentences of a project on a page in the browser."""
    from seqmix.app.project_config import project_config
    from seqmix.serve.project import open_project
    from seqmix.serve.servers import known_server
    from seqmix.serve.trainer.supervisor import trainer_of
    from seqmix.serve.web.app import create_app
    from seqmix.serve.web.http_server import listening, server
    from seqmix.serve.web.security import Hosts

    with open_project(project) as own:
        project_config(own.folder, own.settings)  # refused here rather than in the background
        with listening(host, port) as listener:
            shown, taken = _name(host), listener.getsockname()[1]
            token = secrets.token_urlsafe(32)
            link = f"http://{shown}:{taken}/login?token={token}"
            trainer = trainer_of(own.folder) if train else None
            app = create_app(
                own,
                (token, _owner(own.store)),
                Hosts.of(host, allow_host or ()),
                trainer=trainer.trouble
                if trainer is not None
                else lambda: "off: this server was started with --no-train",
            )
            say(f"{own.settings.name}: {link}")
            if host not in _LOOPBACK:
                say(
                    "others on the network can reach this page with a link of their own; the connection is not encrypted"
                )
            with (
                known_server(own.store, f"http://{shown}:{taken}") as others,
                _opened(link if browser else None),
            ):
                if others:
                    say(
                        f"this project has another server already, at {', '.join(others)}: both share its answers, and one of them trains"
                    )
                _serve(server(app, grace=3), listener, trainer)
    say("stopped; every answer that was shown as saved is saved")


def _serve(server: Any, listener: socket.socket, trainer: Any) -> None:
    """Run until Ctrl-C or SIGTERM, then end the trainer too."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(
        signal.SIGTERM, stop
    )  # subtle: uvicorn ends gracefully, then raises the signal again for us
    try:
        if trainer is not None:
            trainer.start()
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        if trainer is not None:
            trainer.stop()
        signal.signal(signal.SIGTERM, before)


def _name(host: str) -> str:
    """The name for a link: what people can type."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _owner(store: Any) -> Any:
    """Whom the link of this start stands for: the project's first admin, made now if there is none."""
    from seqmix.serve.store.annotators import add_annotator, find_annotator, list_annotators

    admin = next((annotator for annotator in list_annotators(store) if annotator.admin), None)
    if admin is None:
        try:
            name = getpass.getuser()
        except (KeyError, OSError):
            name = "owner"
        try:
            add_annotator(store, name, admin=True)
        except (
            DataError
        ):  # an annotator of that name who is no admin, or a name that cannot be shown
            name = f"owner-{secrets.token_hex(2)}"
            add_annotator(store, name, admin=True)
        admin = find_annotator(store, name)
    return admin


@contextmanager
def _opened(link: str | None) -> Iterator[None]:
    """Open the browser by way of a file only we can read: arguments of a command are seen by every user of the machine."""
    if link is None:
        yield
        return
    handle, name = tempfile.mkstemp(prefix="seqmix-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={escape(link)}">'
        )
    threading.Thread(target=lambda: webbrowser.open(Path(name).as_uri()), daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            Path(name).unlink()
