"""What the routes share: the project, who is asking, and how sentences look in JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request

from seqmix.data.sentence import Sentence
from seqmix.serve.estimates import Estimates
from seqmix.serve.project import Project
from seqmix.serve.store.group_commit import GroupCommit
from seqmix.serve.store.records import Annotator, Mark
from seqmix.serve.store.store import Store


@dataclass(frozen=True)
class Site:
    """One project being served."""

    project: Project
    estimates: Estimates
    turns: GroupCommit
    trainer: Callable[
        [], str | None
    ]  # what keeps the trainer from running, in words; None: nothing

    @property
    def store(self) -> Store:
        """The project's store."""
        return self.project.store


async def _asking(request: Request) -> Annotator:
    annotator: Annotator = request.state.annotator  # the guard has put it there
    return annotator


async def _admin(request: Request) -> Annotator:
    annotator = await _asking(request)
    if not annotator.admin:
        raise HTTPException(403, "this is for admins of the project")
    return annotator


Me = Annotated[Annotator, Depends(_asking)]
Admin = Annotated[Annotator, Depends(_admin)]


def shown(sentence: Sentence, version: int) -> dict[str, Any]:
    """A sentence as the page takes it; `spaces` says where white space followed, when the raw text is known."""
    return {
        "id": sentence.id,
        "tokens": sentence.tokens,
        "spaces": spaces(sentence),
        "version": version,
    }


def spaces(sentence: Sentence) -> list[bool] | None:
    """Whether white space follows each token in the text."""
    if sentence.offsets is None:
        return None
    ends, starts = (
        [end for _, end in sentence.offsets],
        [start for start, _ in sentence.offsets[1:]],
    )
    return [start > end for end, start in zip(ends, starts, strict=False)] + [False] * bool(ends)


def spans(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    """Marks as JSON objects."""
    return [{"start": mark.start, "end": mark.end, "tag": mark.tag} for mark in marks]


def ranges(sure: Sequence[tuple[int, int]] | None) -> list[list[int]] | None:
    """A sure part as JSON."""
    return None if sure is None else [[start, end] for start, end in sure]
