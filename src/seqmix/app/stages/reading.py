"""Stage 2 of a project's trainer: the encoder reads the project's text.

It is read once, and again when there is twice as much.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seqmix.app.config import Config
from seqmix.app.plan import adapted_folder, encoder_of
from seqmix.app.stages.names import Stages, Watch
from seqmix.data.files import write_text
from seqmix.data.sentence import Sentence
from seqmix.serve.project import Project
from seqmix.serve.store.sentences import read_audit_sentences, read_sentences

FORMAT_VERSION = 1
_MOST = 20_000  # sentences that are read; of more, a random sample
_STATE = "text.json"


@dataclass
class AdaptedEncoder:
    """The encoder of a project, adapted to its text as soon as that is done."""

    project: Project
    config: Config
    watch: Watch | None = None
    _adapted: Path | None = field(default=None, init=False)
    _size: int | None = field(default=None, init=False)  # of the project when it was adapted

    @property
    def encoder(self) -> str:
        """The adapted encoder, or the one of the settings before there is one."""
        if self._size is None:
            self._find()
        return self.config.tagger.encoder if self._adapted is None else str(self._adapted)

    @property
    def name(self) -> str:
        """What tells one adapted encoder from another; empty before there is one."""
        return "" if self.encoder == self.config.tagger.encoder else Path(self.encoder).name

    def due(self, size: int) -> bool:
        """Whether the text has not been read, or was half as much as these sentences."""
        return not self.name or size >= 2 * max(1, self._size or 0)

    def read(self, size: int, between: Callable[[], None]) -> None:
        """Adapt the encoder to the text; `between` is called after each step."""
        stages = Stages(0, self.watch)

        def progress(done: int, total: int, loss: float) -> None:
            stages.reading(done, total, loss)
            between()

        text = self.text(None)
        folder = Path(encoder_of(self.config, self._sample(text), self._place, progress, True)())
        state = {"size": size, "sentences": len(text), "folder": folder.name}
        state_text = json.dumps({"format_version": FORMAT_VERSION, **state})
        write_text(self._place / _STATE, state_text + "\n")
        self._adapted, self._size = folder, size
        for path in self._place.iterdir():
            if path.is_dir() and path.name not in (folder.name, f"{folder.name}.lock"):
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix == ".checkpoint":
                path.unlink(missing_ok=True)

    @property
    def _place(self) -> Path:
        return self.project.models / "encoder"

    def _find(self) -> None:
        """Look for an encoder adapted earlier, with these settings."""
        self._size = 0
        with suppress(OSError, ValueError, KeyError, TypeError):
            state = json.loads((self._place / _STATE).read_text(encoding="utf-8"))
            if state["format_version"] != FORMAT_VERSION:
                return
            text = self.text(int(state["sentences"]))
            folder = adapted_folder(self.config, self._sample(text), self._place)
            if folder.name == state["folder"] and (folder / "adapt.json").is_file():
                self._adapted, self._size = folder, int(state["size"])

    def text(self, first: int | None) -> list[Sentence]:
        """Return the first sentences of the project, without those that measure its taggers."""
        audit = {sentence.id for sentence in read_audit_sentences(self.project.store)}
        text = [s for s in read_sentences(self.project.store) if len(s) and s.id not in audit]
        return text[:first]

    def _sample(self, text: list[Sentence]) -> list[Sentence]:
        order = np.random.default_rng(self.config.seed).permutation(len(text))
        return [text[i] for i in np.sort(order[:_MOST])]
