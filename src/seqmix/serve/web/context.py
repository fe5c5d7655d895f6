"""What the routes share: the project, who is asking, and how sentences look in JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request

from seqmix.data.sentence import Sentence
from seqmix.serve.answers.mark_all import MarkedTexts
from seqmix.serve.progress.estimates import Estimates
from seqmix.serve.progress.pace import Pace
from seqmix.serve.project import Project
from seqmix.serve.sources.figures import Figures
from seqmix.serve.sources.offers import Sources
from seqmix.serve.store.group_commit import GroupCommit
from seqmix.serve.store.records import Annotator, Mark
from seqmix.serve.store.store import Store


@dataclass(frozen=True)
class Context:
    """A project that is being served."""

    project: Project
    estimates: Estimates
    writer: GroupCommit
    sources: Sources
    figures: Figures
    pace: Pace
    marked: MarkedTexts
    trouble: Callable[[], str | None]  # why the trainer does not run; None: it runs

    @property
    def store(self) -> Store:
        """The project's store."""
        return self.project.store


async def _annotator(request: Request) -> Annotator:
    annotator: Annotator = request.state.annotator  # set by the guard
    return annotator


async def _admin(request: Request) -> Annotator:
    annotator = await _annotator(request)
    if not annotator.admin:
        raise HTTPException(403, "this is for admins of the project")
    return annotator


User = Annotated[Annotator, Depends(_annotator)]
Admin = Annotated[Annotator, Depends(_admin)]


def is_blind(context: Context, user: Annotator) -> bool:
    """Whether somebody must not see answers of others, since they give second answers."""
    return bool(context.project.settings.overlap_share) and not user.admin


def sentence_json(sentence: Sentence, version: int) -> dict[str, Any]:
    """Return a sentence for the page, with the white space between tokens if the text is known."""
    return {
        "id": sentence.id,
        "tokens": sentence.tokens,
        "spaces": _spaces(sentence),
        "version": version,
    }


def _spaces(sentence: Sentence) -> list[bool] | None:
    """Return whether white space follows each token; "a b." -> [True, False, False]."""
    if sentence.offsets is None:
        return None
    ends = [end for _, end in sentence.offsets]
    starts = [start for start, _ in sentence.offsets[1:]]
    return [start > end for end, start in zip(ends, starts, strict=False)] + [False] * bool(ends)


def spans_json(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    """Return marks as JSON objects."""
    return [{"start": mark.start, "end": mark.end, "tag": mark.tag} for mark in marks]


def ranges_json(sure: Sequence[tuple[int, int]] | None) -> list[list[int]] | None:
    """Return a sure part as JSON."""
    return None if sure is None else [[start, end] for start, end in sure]
