"""Optional packages, imported when they are needed and not before."""

from __future__ import annotations

import importlib
from typing import Any

from seqmix.errors import MissingExtraError


def import_extra(module: str, extra: str, needed_for: str) -> Any:
    """Return an optional module, or say which extra of seqmix installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(extra, needed_for) from error
