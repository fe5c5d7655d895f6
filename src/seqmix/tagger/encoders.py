"""What a tagger is made of, kept for the next one: pretrained encoders and their pieces; and the device it is put on."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from seqmix.errors import ConfigError
from seqmix.starter import load_encoder
from seqmix.tagger.pieces import WordPieces
from seqmix.tagger.training.loop import seeded


def pretrained(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """An encoder as its files give it, kept because every round starts from it again."""
    return _loaded(name, _stamp(name))


@lru_cache(maxsize=2)
def _loaded(name: str, stamp: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """`stamp` changes with the files."""
    with seeded(0):  # subtle: torch's own generator fills what the files lack, as RoBERTa's pooler
        return load_encoder(name)


def _stamp(name: str) -> Any:
    """When the files of an encoder's folder were written."""
    folder = Path(name)
    return (
        tuple(sorted((file.name, file.stat().st_mtime_ns) for file in folder.iterdir()))
        if folder.is_dir()
        else None
    )


@lru_cache(maxsize=4)
def pieces_of(tokenizer: PreTrainedTokenizerFast, limit: int) -> WordPieces:
    """Pieces are cut once for all rounds."""
    return WordPieces(tokenizer, limit)


def device_of(name: str | None) -> torch.device:
    """The device asked for, once it is certain that it is there; else the best there is."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise ConfigError(f"there is no device {name!r} here; give cpu or cuda") from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"there is no device {name!r} here; give cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"the device {name!r} is not there, torch sees {torch.cuda.device_count()} GPUs; give cpu"
        )
    return device
