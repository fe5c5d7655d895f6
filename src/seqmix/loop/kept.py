"""What an earlier start of a run left for the next one, read with care: a file that is not whole is named, never passed over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented
from seqmix.data.files import lines
from seqmix.errors import DataError, RunError


def read_generated(path: Path, described: dict[str, Any]) -> list[Augmented]:
    """What a round generated, as many as its description says."""
    with damaged(path):
        found = [Augmented.from_record(json.loads(line)) for _, line in lines(path)]
        if len(found) != described["generated"]:
            raise ValueError(f"it has {len(found)} sentences instead of {described['generated']}")
    return found


def read_json(path: Path, *keys: str) -> dict[str, Any]:
    """An object with these keys."""
    with damaged(path):
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not set(keys) <= set(found):
            raise ValueError(f"expected {' and '.join(keys) or 'an object'}")
    return found


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Name the file that cannot be read, and what to do: a round that is not finished can be done again, a finished one cannot."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, DataError) as error:
        told = error.expected if isinstance(error, DataError) else error.strerror if isinstance(error, OSError) else str(error)
        why = (str(told).splitlines() or [type(error).__name__])[0]
        again = f"; if its round is not in rounds.jsonl, remove {path.parent} instead and it is done again"
        raise RunError(f"{path} is damaged: {why}; restore it from a backup" + again * path.parent.name.isdecimal()) from error
