"""The model that is served, loaded again when its files change.

A new model takes over once it has tagged a sentence; until then, and if it is broken, the old one
answers. A folder that is still being written is not read: it must look the same twice in a row.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from seqmix.data.latest_model import newest_model
from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError, SeqMixError, first_line

_PROBE = Sentence("probe", ("Ada", "left", "Oslo", "."))
_log = logging.getLogger("seqmix.serve")


class TokenPath(Protocol):
    """One way to tag a sentence, with the probability of each token's tag."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags."""
        ...

    @property
    def probability(self) -> float:
        """How probable these tags are."""
        ...

    @property
    def by_token(self) -> tuple[float, ...]:
        """How probable each tag is."""
        ...


# The n best paths of each sentence, best first.
BestPaths = Callable[[Sequence[Sentence], int], Iterable[Sequence[TokenPath]]]


@dataclass(frozen=True)
class ServedTagger:
    """A tagger that is served."""

    version: str  # a digest: the same files have the same version
    tags: tuple[str, ...]
    best_paths: BestPaths
    loaded_at: float = field(default_factory=time.time)


@dataclass
class Reloads:
    """How often the model was loaded again, and how often that failed."""

    done: int = 0
    failed: int = 0


class ServedModel:
    """The model in a folder or file: `current` answers, `trouble` says why a newer one does not."""

    def __init__(self, path: Path, load: Callable[[Path], ServedTagger]) -> None:
        self.path, self._load = path, load
        self.trouble: str | None = None
        self.reloads = Reloads()
        self._loaded = self._seen = state_of(path)
        self._refused: object = None
        self.current = self._tried()

    def check(self) -> None:
        """Load the model again if its files have changed and are no longer changing."""
        before, self._seen = self._seen, state_of(self.path)
        if self._seen == self._loaded:
            self.trouble = None
            return
        if self._seen == self._refused or self._seen != before:
            return
        try:
            model = self._tried()
        except Exception as error:  # a broken file fails in its own way
            self.trouble = str(error) if isinstance(error, SeqMixError) else first_line(error)
            self._refused, self.reloads.failed = self._seen, self.reloads.failed + 1
            _log.error("the changed model is not used: %s", self.trouble)
            return
        if state_of(self.path) == self._seen:  # else it changed while it was read: once more
            self.current, self._loaded, self._refused = model, self._seen, None
            self.trouble, self.reloads.done = None, self.reloads.done + 1

    def _tried(self) -> ServedTagger:
        """Return the model now in the files, once it has tagged a sentence."""
        model = self._load(self.path)
        list(model.best_paths([_PROBE], 1))
        return model


def version_of(place: Path | str) -> str:
    """Return the version of a model: a digest of its file, of its checksums, or of a text."""
    if isinstance(place, str):
        return sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    file = place / "tagger.json" if place.is_dir() else place
    with file.open("rb") as content:
        digest = sha256()
        while part := content.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()[:12]


def state_of(path: Path) -> Any:
    """Return what changes when a model's files do; why there is none, if there is none."""
    try:
        place = newest_model(path)
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        stats = [(file.name, file.stat()) for file in files]
    except (ModelError, OSError) as error:
        return str(error)
    return place, [(name, s.st_ino, s.st_size, s.st_mtime_ns) for name, s in stats]
