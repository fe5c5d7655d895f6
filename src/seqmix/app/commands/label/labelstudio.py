"""`seqmix labelstudio`: a project behind Label Studio, as its ML backend."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqmix.app.config import load_config, merged, nested, parse_changes, read_toml
from seqmix.app.console import say
from seqmix.app.options import settings_option
from seqmix.app.taggers import absolute_name, load_tagger
from seqmix.data.latest_model import using_model
from seqmix.errors import ConfigError, ModelError
from seqmix.external.names import is_external

if TYPE_CHECKING:
    from seqmix.serve.labelstudio.protocol import Backend

_OF_PROJECT = ("audit_share", "audit_train", "overlap_share")  # settings without a section

Folder = Annotated[
    Path, typer.Option(help="Project folder; created when Label Studio connects, if new.")
]
Model = Annotated[
    Path | None,
    typer.Option(
        help="Tagger to begin with: it suggests at once and is trained further, "
        "unless it is a model from another library."
    ),
]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.")]
Host = Annotated[
    str, typer.Option(help="Address to listen on; letting other machines in requires a password.")
]
User = Annotated[
    str,
    typer.Option(help="User that Label Studio logs in as, with the password in SEQMIX_PASSWORD."),
]
Url = Annotated[
    str | None,
    typer.Option(
        help="Label Studio's address, to put its tasks in order; its key is read from "
        "LABEL_STUDIO_API_KEY."
    ),
]
MinNew = Annotated[
    int | None,
    typer.Option(
        help="Train after this many new or changed annotations; the project's batch by default."
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", help="A TOML file as for simulate, written into the project's settings."
    ),
]
Change = Annotated[
    list[str] | None, settings_option("query.policy=mnlp or audit_share=0.2, on top of the file")
]


def labelstudio(
    folder: Folder,
    model: Model = None,
    port: Port = 9090,
    host: Host = "127.0.0.1",
    user: User = "seqmix",
    url: Url = None,
    min_new: MinNew = None,
    config: ConfigFile = None,
    change: Change = None,
) -> None:
    """Serve a project to Label Studio: suggest labels and choose what to label next."""
    if min_new is not None and min_new < 1:
        raise ConfigError(f"--min-new must be at least 1; got {min_new}")
    values = _explicit(config, parse_changes(change))
    password = os.environ.get("SEQMIX_PASSWORD", "")
    if not password and not _is_loopback(host):
        raise ConfigError(
            f"--host {host} lets others in: set a password in SEQMIX_PASSWORD, "
            f"and give it to Label Studio with the user {user}"
        )
    key = os.environ.get("LABEL_STUDIO_API_KEY", "")
    if url is None and key:
        say("LABEL_STUDIO_API_KEY is set but --url is not: tasks will not be put in order")
    from seqmix.data.files import locked
    from seqmix.serve.labelstudio.app import Password, create_app
    from seqmix.serve.web.http_server import listening, server

    if min_new is not None:
        values["batch"] = min_new
    with locked(folder), listening(host, port) as listener:
        backend = build_backend(folder, values, model, url, key)
        app = create_app(backend, Password(user, password) if password else None)
        name = f"[{host}]" if ":" in host else host
        say(
            f"Label Studio's ML backend is at http://{name}:{listener.getsockname()[1]}; "
            f"connect it in the project's Settings > Model. The project is in {folder}"
        )
        server(app, grace=5).run(sockets=[listener])


def build_backend(
    folder: Path,
    values: Mapping[str, Any],
    model: Path | None = None,
    url: str | None = None,
    key: str = "",
) -> Backend:
    """Return the backend in a folder, with its settings changed to `values` of a config."""
    from seqmix.app.project_config import project_config
    from seqmix.app.suggesting import guesses
    from seqmix.serve.labelstudio.client import LabelStudioClient
    from seqmix.serve.labelstudio.protocol import Backend, BackendParts
    from seqmix.serve.project import START, Project, create_project, open_project
    from seqmix.serve.settings import SETTINGS, ProjectSettings, change_settings, read_settings
    from seqmix.serve.trainer.supervisor import trainer_of

    changes = _settings(folder, values)
    if model is not None and (is_external(model) or model.is_file()):
        changes["start"] = absolute_name(model)
    if (folder / SETTINGS).exists():
        settings = read_settings(folder)
        if any(getattr(settings, name) != value for name, value in changes.items()):
            settings = change_settings(folder, **changes)
    else:
        settings = ProjectSettings("Label Studio", ("LABEL",), **changes)
    device = project_config(folder, settings).tagger.device
    if model is not None:
        tagger = load_tagger(model, device)
        if tagger.tag_set is None or not any(tag.startswith("B-") for tag in tagger.tag_set.tags):
            raise ModelError(
                f"the tagger in {model} has no B- tags, so it finds no spans; train one on spans"
            )

    def create(tags: tuple[str, ...], name: str) -> None:
        create_project(folder, [], ProjectSettings(name, tags, **changes), may_be_empty=True)

    def open_with_model() -> Project:
        project = open_project(folder)
        if model is not None and "start" not in changes:
            with using_model(model) as newest:
                _copy(newest, project.models / START)
        return project

    client = None if url is None else LabelStudioClient(url, key)
    load = lambda place: partial(guesses, load_tagger(place, device))  # noqa: E731
    return Backend(folder, BackendParts(open_with_model, create, trainer_of, load, client))


def _explicit(file: Path | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a config file and changes say, once it is certain that it is valid."""
    of_project = {key: changes[key] for key in _OF_PROJECT if key in changes}
    changes = nested({key: value for key, value in changes.items() if key not in of_project})
    load_config(None, file, changes)
    values = {} if file is None else nested(read_toml(file))
    return {**merged(values, changes), **of_project}


def _settings(folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that project.toml has a name for; write the rest to training.toml."""
    from seqmix.app.project_config import FILE, IN_PROJECT, refuse_unused
    from seqmix.data.files import write_text

    changes = {key: values[key] for key in ("seed", "batch", *_OF_PROJECT) if key in values}
    training: dict[str, dict[str, Any]] = {}
    for name, section in values.items():
        for key, value in section.items() if isinstance(section, dict) else ():
            if f"{name}.{key}" in IN_PROJECT:
                changes[IN_PROJECT[f"{name}.{key}"]] = value
            else:
                training.setdefault(name, {})[key] = value
    refuse_unused(training, "labelstudio")
    path = folder / FILE
    before = nested(read_toml(path)) if path.exists() else {}
    after = merged(before, training)
    if after != before:
        lines = []
        for name, section in after.items():
            pairs = (f"{key} = {json.dumps(v, ensure_ascii=False)}" for key, v in section.items())
            lines += [f"[{name}]", *pairs]
        write_text(path, "\n".join(lines) + "\n")
    return changes


def _copy(model: Path, place: Path) -> None:
    """Keep a copy of the given tagger, unless it is there already."""
    from seqmix.app.provenance import folder_digest
    from seqmix.data.files import replacing
    from seqmix.tagger.model_folders import TAGGER

    if place.is_dir() and folder_digest(place) == folder_digest(model):
        return
    with replacing(place, TAGGER) as beside:
        shutil.copytree(model, beside, dirs_exist_ok=True)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
