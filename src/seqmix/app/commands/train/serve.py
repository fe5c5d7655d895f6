"""`seqmix serve`: a tagger behind HTTP, for programs."""

from __future__ import annotations

import os
import re
import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqmix.app.console import say
from seqmix.data.latest_model import newest_model
from seqmix.errors import ConfigError
from seqmix.external.names import is_external, parse_external

if TYPE_CHECKING:
    from seqmix.serve.predictor.model import ServedTagger

_TOKEN = "SEQMIX_TOKEN"
_GRACE, _DRAIN = 300, 1.0  # seconds after SIGTERM: to answer what waits, to take what is on its way

Model = Annotated[
    Path,
    typer.Argument(
        help="A tagger: a folder written by train, a project (its newest model), "
        "or a model from another library, such as hf:FOLDER."
    ),
]
Port = Annotated[
    str,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Port to listen on; 0 for any free one. 0.0.0.0:8080 lets the network in.",
    ),
]


def serve(model: Model, port: Port = "8080") -> None:
    """Serve a tagger's predictions over HTTP."""
    from seqmix.serve.predictor.app import create_app
    from seqmix.serve.predictor.model import ServedModel
    from seqmix.serve.web.http_server import link_host, listening, server, until_stopped

    host, number = parse_port(port)
    token, chosen = _token()
    with listening(host, number) as listener:
        watched = Path(parse_external(model).model) if is_external(model) else model
        served = ServedModel(watched, lambda _: load_model(model))
        say(f"{model} is served at http://{link_host(host)}:{listener.getsockname()[1]}")
        say(f"its token is in {_TOKEN}" if chosen else f"token={token}")
        with until_stopped():
            server(create_app(served, token), _GRACE, drain=_DRAIN).run(sockets=[listener])
    say("stopped; every request that was accepted is answered")


def parse_port(text: str) -> tuple[str, int]:
    """Return host and port: 8080 is 127.0.0.1:8080, and [::1]:8080 has an IPv6 address."""
    host, _, number = text.rpartition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 6):
        raise ConfigError(f"--port must look like 8080 or 0.0.0.0:8080; got {text[:80]!r}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(number)


def _token() -> tuple[str, bool]:
    """Return the token that clients must send, and whether it was chosen by the environment."""
    token = os.environ.get(_TOKEN, "")
    if token and not re.fullmatch(r"[A-Za-z0-9_-]{16,200}", token):
        raise ConfigError(
            f"{_TOKEN} must be 16 to 200 letters, digits, - or _; got {len(token)} characters"
        )
    return token or secrets.token_urlsafe(32), bool(token)


def load_model(name: Path) -> ServedTagger:
    """Return the tagger of this name, ready to be served."""
    from seqmix.app.taggers import digest_of, load_tagger
    from seqmix.serve.predictor.model import ServedTagger, version_of

    tagger = load_tagger(name)
    version = version_of(digest_of(name) if is_external(name) else newest_model(name))
    return ServedTagger(version, tagger.tag_set.tags, partial(tagger.best_paths, by_token=True))
