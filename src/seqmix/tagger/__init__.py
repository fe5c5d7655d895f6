"""The tagger: an encoder with a linear or CRF head, trained on hard, soft and missing tag rows.

Names are imported when first used: reading settings needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqmix.tagger.paths import Path
    from seqmix.tagger.settings import Settings
    from seqmix.tagger.tagger import Tagger

__all__ = ["Path", "Settings", "Tagger"]
_MODULES = {"Path": "paths", "Settings": "settings", "Tagger": "tagger"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"seqmix.tagger.{_MODULES[name]}"), name)
