"""What a run is started with and may not change when it resumes: its config and its data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqmix.data.files import LEFTOVER, locked, write_text
from seqmix.errors import RunError
from seqmix.loop.rounds import read_object

INPUTS = "inputs.json"
Inputs = Mapping[str, str]  # digests by name: train, dev, test; encoder and lm if they are folders
_SPLITS = ("train", "dev", "test")


def start_files(
    folder: Path, config: str, environment: dict[str, Any], inputs: Inputs | None = None
) -> bool:
    """Write the config, environment and inputs of a new run; refuse to change those of an old one.

    Return False when an old run has no digests of its inputs.
    """
    path = folder / "config.toml"
    try:
        if path.exists():
            if path.read_text(encoding="utf-8", errors="replace") != config:
                raise RunError(
                    f"{folder} holds a run with another config; give another directory, "
                    "or the settings it was started with"
                )
            return _same_inputs(folder, inputs or {})
        strangers = (
            [child.name for child in folder.iterdir() if not _ours(child.name)]
            if folder.exists()
            else []
        )
    except OSError as error:
        raise RunError(f"cannot use {folder} as a run directory: {error.strerror}") from error
    if strangers:
        raise RunError(f"{folder} is not empty and holds no run; give a new directory")
    with locked(folder):
        write_text(
            folder / "environment.json", json.dumps(environment, indent=1, sort_keys=True) + "\n"
        )
        if inputs is not None:
            write_text(folder / INPUTS, json.dumps(dict(inputs), indent=1, sort_keys=True) + "\n")
        write_text(path, config)
    return True


def read_inputs(folder: Path) -> dict[str, str] | None:
    """Return the digests a run was started with; None where there are none."""
    path = folder / INPUTS
    if not path.exists():
        return None
    return {name: str(digest) for name, digest in read_object(path).items()}


def _same_inputs(folder: Path, inputs: Inputs) -> bool:
    """Return whether a run has digests of its inputs; refuse other inputs."""
    started = read_inputs(folder)
    if started is None or not inputs:
        return started is not None or not inputs
    names = sorted({*started, *inputs})
    changed = [name for name in names if started.get(name) != inputs.get(name)]
    if changed:
        kind = "data" if any(name in _SPLITS for name in changed) else "model folders"
        raise RunError(
            f"{folder} holds a run on other {kind}: {' and '.join(changed)} changed since it was "
            f"started; give another directory, or the {kind} it was started with"
        )
    return True


def _ours(name: str) -> bool:
    """Return whether a start that was killed before it wrote the config may have left this."""
    return name in ("lock", "environment.json", INPUTS) or LEFTOVER.fullmatch(name) is not None
