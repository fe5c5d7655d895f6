"""What teachers taught: unlabeled sentences with the tags they gave them, kept in the project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seqmix.data import formats
from seqmix.data.files import replacing
from seqmix.data.overwriting import FolderKind
from seqmix.data.sentence import Sentence
from seqmix.errors import SeqMixError

FORMAT_VERSION = 1
FOLDER, TEACHERS = "lessons", "teachers"  # in the folder of the models
_SENTENCES, _STATE = "lessons.jsonl", "lessons.json"
_KIND = FolderKind("lessons", (), (_SENTENCES, _STATE))


@dataclass(frozen=True)
class Lessons:
    """The sentences that students learn from beside the labeled ones."""

    seq: int  # the last event that the teachers knew
    encoder: str  # what their encoder had read
    tags: tuple[str, ...]
    sentences: Sequence[Sentence]

    @property
    def name(self) -> str:
        """What tells these lessons from others."""
        return f"{self.encoder}:{self.seq}"


def write_lessons(models: Path, lessons: Lessons) -> None:
    """Replace the lessons of a project."""
    state = {"seq": lessons.seq, "encoder": lessons.encoder, "tags": lessons.tags}
    with replacing(models / FOLDER, _KIND) as beside:
        formats.write(lessons.sentences, beside / _SENTENCES, "jsonl-tokens")
        described = json.dumps({"format_version": FORMAT_VERSION, **state})
        (beside / _STATE).write_text(described + "\n", encoding="utf-8")


def read_lessons(models: Path) -> Lessons | None:
    """Return the lessons of a project; damaged ones count as none, since they are made again."""
    folder = models / FOLDER
    try:
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        if state["format_version"] != FORMAT_VERSION:
            return None
        sentences = list(formats.read(folder / _SENTENCES, "jsonl-tokens"))
        return Lessons(int(state["seq"]), state["encoder"], tuple(state["tags"]), sentences)
    except (OSError, ValueError, KeyError, TypeError, SeqMixError):
        return None
