"""What a run's results come from besides its config: data, models and environment."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seqmix import __version__
from seqmix.app.config import Config
from seqmix.data.sentence import Row, Sentence
from seqmix.errors import ModelError

DATA, MODELS = ("train", "dev", "test"), ("encoder", "lm")
_SHORT = 12  # characters in a table


def data_digests(splits: Mapping[str, Sequence[Sentence]]) -> dict[str, str]:
    """Return a digest of the tokens and tags of each split, whatever its format and ids."""
    return {name: _digest_of(sentences) for name, sentences in splits.items()}


def model_digests(config: Config) -> dict[str, str]:
    """Return a digest of each model that the config names as a local folder, by its use."""
    names = dict(zip(MODELS, (config.tagger.encoder, config.augment.lm), strict=True))
    return {use: folder_digest(Path(name)) for use, name in names.items() if Path(name).is_dir()}


def folder_digest(folder: Path) -> str:
    """Return a digest of the names and contents of all files below a folder but hidden ones."""
    whole = hashlib.sha256()
    try:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = file.relative_to(folder)
            if not any(part.startswith(".") for part in name.parts):
                with file.open("rb") as content:
                    digest = hashlib.file_digest(content, "sha256").hexdigest()
                whole.update(f"{name.as_posix()}\n{digest}\n".encode())
    except OSError as error:
        raise ModelError(f"cannot read the model folder {folder}: {error.strerror}") from error
    return whole.hexdigest()


def summary(digests: Mapping[str, str] | None, names: Sequence[str]) -> str | None:
    """Return one short digest of several, for a table; None where there are none."""
    chosen = {name: digest for name, digest in (digests or {}).items() if name in names}
    if not chosen:
        return None
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:_SHORT]


def _digest_of(sentences: Iterable[Sentence]) -> str:
    whole = hashlib.sha256()
    for sentence in sentences:
        whole.update(
            json.dumps([sentence.tokens, [_plain(row) for row in sentence.tags]]).encode() + b"\n"
        )
    return whole.hexdigest()


def _plain(row: Row) -> object:
    return sorted(row.items()) if isinstance(row, Mapping) else row


def environment() -> dict[str, Any]:
    """Return the versions that may change a result."""
    import numpy
    import torch
    import transformers

    return {
        "seqmix": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
    }
