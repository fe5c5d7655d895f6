"""Where a run's results come from besides its config: digests of data and models, and the environment."""

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
    """A digest of each split: its tokens and tags, in their order; neither the file format nor the sentences' ids change it."""
    return {name: _digest_of(sentences) for name, sentences in splits.items()}


def model_digests(config: Config) -> dict[str, str]:
    """A digest of each model the config names as a local folder, by what the model is for."""
    named = (config.tagger.encoder, config.augment.lm)
    return {
        use: folder_digest(Path(name))
        for use, name in zip(MODELS, named, strict=True)
        if Path(name).is_dir()
    }


def folder_digest(folder: Path) -> str:
    """The names and contents of all files below a folder, hidden ones left out."""
    whole = hashlib.sha256()
    try:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = file.relative_to(folder)
            if not any(part.startswith(".") for part in name.parts):
                with file.open("rb") as content:
                    whole.update(
                        f"{name.as_posix()}\n{hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode()
                    )
    except OSError as error:
        raise ModelError(f"cannot read the model folder {folder}: {error.strerror}") from error
    return whole.hexdigest()


def summary(digests: Mapping[str, str] | None, names: Sequence[str]) -> str | None:
    """Those of the digests that are named as one short one for a table; None where there are none."""
    chosen = (
        {name: digests[name] for name in names if name in digests} if digests is not None else {}
    )
    return (
        hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:_SHORT]
        if chosen
        else None
    )


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
    """Versions that may change a result."""
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
