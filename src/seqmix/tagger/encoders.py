"""Pretrained encoders and their pieces, cached for the next tagger; and the device it runs on."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from seqmix.errors import ConfigError
from seqmix.starter import load_encoder
from seqmix.tagger.training.determinism import seeded
from seqmix.tagger.windows import WordPieces


def pretrained(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return an encoder as its files have it, cached because every round starts from it."""
    return _load(name, _stamp(name))


@lru_cache(maxsize=2)
def _load(name: str, stamp: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load an encoder; `stamp` changes when its files do."""
    with seeded(0):  # torch's generator fills what the files lack, such as RoBERTa's pooler
        return load_encoder(name)


def _stamp(name: str) -> Any:
    """Return when the files of an encoder's folder were written."""
    folder = Path(name)
    if not folder.is_dir():
        return None
    return tuple(sorted((file.name, file.stat().st_mtime_ns) for file in folder.iterdir()))


@lru_cache(maxsize=4)
def pieces_of(tokenizer: PreTrainedTokenizerFast, limit: int) -> WordPieces:
    """Return a tokenizer's pieces, cached so that all rounds share what is cut."""
    return WordPieces(tokenizer, limit)


def device_of(name: str | None) -> torch.device:
    """Return the device of this name, or the best there is; one that is missing is an error."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise ConfigError(f"there is no device {name!r} here; give cpu or cuda") from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"there is no device {name!r} here; give cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"the device {name!r} is not there, torch sees {torch.cuda.device_count()} GPUs; "
            "give cpu"
        )
    return device
