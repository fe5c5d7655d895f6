"""`seqmix labelstudio`: the ML backend of a Label Studio project."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import threading
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from seqmix.app.config import Config, load_config, parse_changes
from seqmix.app.console import say
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError, ModelError, SeqMixError

# people label tens of sentences, not thousands: small batches and a least number of steps, or nothing is learned from them
_FEW: dict[str, Any] = {
    "augment.variant": "none",
    "training.batch_size": 8,
    "training.min_steps": 60,
}


def labelstudio(
    folder: Annotated[
        Path,
        typer.Option(
            help="Where annotations and models are kept; the same folder goes on where it stopped."
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(help="A tagger to begin with: it suggests at once and is trained further."),
    ] = None,
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0 for any that is free.")
    ] = 9090,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on; other than this machine only with a password."
        ),
    ] = "127.0.0.1",
    user: Annotated[
        str,
        typer.Option(help="Ask Label Studio for this user and the password in SEQMIX_PASSWORD."),
    ] = "seqmix",
    url: Annotated[
        str | None,
        typer.Option(
            help="Label Studio's own address, to keep its tasks in the policy's order; its key in LABEL_STUDIO_API_KEY."
        ),
    ] = None,
    min_new: Annotated[
        int, typer.Option(help="Train after so many new or changed annotations.")
    ] = 10,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file as simulate takes it: tagger, training, query, augment."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="section.key=value on top of it, as often as needed."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of training and ranking.")] = None,
) -> None:
    """Suggest labels and choose what to label next in Label Studio."""
    if min_new < 1 or not 0 <= port <= 65535:
        raise ConfigError(
            f"--min-new is {min_new} and --port {port}; the first must be at least 1, the second lie between 0 and 65535"
        )
    settings = load_config(None, config, {**_defaults(config), **parse_changes(change)}, seed)
    if settings.adapt.epochs:
        raise ConfigError(
            "adapt.epochs would adapt the encoder anew in each round; run seqmix adapt and give --set tagger.encoder=FOLDER"
        )
    secret = os.environ.get("SEQMIX_PASSWORD", "")
    if not secret and not _is_loopback(host):
        raise ConfigError(
            f"--host {host} lets others in: set a password in SEQMIX_PASSWORD, and give it to Label Studio with the user {user}"
        )
    from seqmix.data.locks import locked
    from seqmix.serve.labelstudio.app import Password, create_app
    from seqmix.serve.web.http_server import server

    with locked(folder), _listening(host, port) as listener:
        backend = build_backend(
            folder, settings, model, url, os.environ.get("LABEL_STUDIO_API_KEY", ""), min_new
        )
        app = create_app(backend, Password(user, secret) if secret else None)
        place = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        say(
            f"Label Studio's ML backend is at {place}; connect it in the project's Settings > Model. Its state is in {folder}"
        )
        server(app, grace=5).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, before anything is loaded."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror}; give another --port"
        ) from error


def _defaults(config: Path | None) -> dict[str, Any]:
    """Our settings, but for those the file has its own word on."""
    said = {} if config is None else load_config(None, config).model_dump(exclude_unset=True)
    return {
        key: value
        for key, value in _FEW.items()
        if key.partition(".")[2] not in said.get(key.partition(".")[0], {})
    }


def build_backend(
    folder: Path,
    settings: Config,
    model: Path | None,
    url: str | None,
    key: str,
    min_new: int,
    settle: float = 2.0,
) -> Any:
    """The backend of a folder, with everything it needs."""
    from seqmix.serve.labelstudio.answers import Answers
    from seqmix.serve.labelstudio.client import Link
    from seqmix.serve.labelstudio.database import File
    from seqmix.serve.labelstudio.protocol import Backend
    from seqmix.serve.labelstudio.rounds import Rounds
    from seqmix.serve.labelstudio.worker import Worker
    from seqmix.tagger import Tagger

    if url is None and key:
        say("LABEL_STUDIO_API_KEY is set but --url is not: tasks will not be put in order")
    link = None if url is None else Link(url, key)
    given = None if model is None else _usable(Tagger.load(model, settings.tagger.device), model)
    file = File(folder)

    def start() -> Any:
        process = get_context("spawn").Process(
            target=train_process, args=(folder, settings.toml(), model), daemon=True
        )
        process.start()
        return process

    load = partial(Tagger.load, device=settings.tagger.device)
    return Backend(Worker(Answers(file), Rounds(file), start, load, given, link, min_new, settle))


def train_process(folder: Path, toml: str, model: Path | None) -> None:
    """One round, in a process of its own: quiet, polite, and with its error left where the server finds it."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C goes to the whole group; the server ends this process itself
    threading.Thread(target=_end_with_server, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(10)
    from seqmix.serve.labelstudio.database import File
    from seqmix.serve.labelstudio.learning import run_round

    try:
        run_round(folder, build_parts(toml, model))
    except Exception as error:
        file = File(folder)
        file.set(
            "error",
            str(error)
            if isinstance(error, SeqMixError)
            else f"training failed: {type(error).__name__}: {error}"[:500],
        )
        file.close()
        raise SystemExit(1) from error


def _end_with_server() -> None:
    """No orphan trains on for a server that was killed."""
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(1)


def build_parts(toml: str, model: Path | None) -> Any:
    """What a round is made of, from the settings."""
    import tomllib

    import torch

    from seqmix.app.plan import build_learner
    from seqmix.loop.schedule import at
    from seqmix.query.policies import FIRST
    from seqmix.serve.labelstudio.learning import Parts
    from seqmix.tagger import Tagger

    settings = Config.model_validate(tomllib.loads(toml))
    torch.set_num_threads(max(1, (os.cpu_count() or 2) - 1))

    def untrained(tag_set: TagSet) -> Any:
        tagger = Tagger(
            settings.tagger.encoder, settings.tagger.head, device=settings.tagger.device
        )
        return tagger.start(tag_set, np.random.default_rng(settings.seed))

    return Parts(
        learner=lambda tag_set, labeled, unlabeled: build_learner(
            settings, tag_set, labeled, unlabeled
        )[0],
        untrained=untrained,
        diverse=FIRST,
        given=None if model is None else Tagger.load(model, settings.tagger.device),
        batch=at(settings.query.size, 0),
        seed=settings.seed,
    )


def _usable(tagger: Any, model: Path) -> Any:
    if tagger.tag_set is None or not any(tag.startswith("B-") for tag in tagger.tag_set.tags):
        raise ModelError(
            f"the tagger in {model} has no B- tags, so it finds no spans; train one on spans"
        )
    return tagger


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
