"""The embedded encoder and language model, and the loader of any other.

`starter` is the default model name: a 6-layer, 384-wide BERT and GPT-2 with the vocabulary of
bert-base-cased, pretrained on English Wikipedia and stored as int8.
docs/models.md is their card, `scripts/pretrain_starter.py` the recipe.

Names are imported when first used: the guards of tokenizers need no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqmix.starter.loader import STARTER, load_encoder, load_language_model

__all__ = ["STARTER", "load_encoder", "load_language_model"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("seqmix.starter.loader"), name)
