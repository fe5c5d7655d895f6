"""A project of labels, opened from Python: what people answered, how far it is, its tagger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from seqmix.api.tagger import Tagger
from seqmix.data.inputs import checked_path
from seqmix.data.sentence import Sentence
from seqmix.errors import NotFoundError
from seqmix.serve.progress.estimates import Estimates
from seqmix.serve.progress.intervals import F1
from seqmix.serve.project import open_project
from seqmix.serve.review.bulk import Accepted, accept, predictions_of, preview
from seqmix.serve.review.guarantee import Guarantee
from seqmix.serve.store.annotators import find_annotator
from seqmix.serve.store.batches.batches import Undone, read_batch, undo_batch
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.rankings import read_generations
from seqmix.serve.store.sentences import read_labeled, read_sentences


@dataclass(frozen=True)
class ProjectStatus:
    """How far a project is."""

    sentences: int  # to label
    labeled: int  # of these
    skipped: int
    discarded: int  # bad text
    seed: int  # sentences that came with labels
    models: int  # trained so far
    audit: F1 | None  # of the newest model on random sentences, once there are enough answers

    @property
    def left(self) -> int:
        """Sentences nobody has labeled or discarded yet."""
        return self.sentences - self.labeled - self.discarded


class Project:
    """A project that `seqmix init` made: `Project("names").labels()`.

    It may be labeled in the browser at the same time. Close it, or use it in a `with` statement.

    Args:
        folder: The folder of the project.
    """

    def __init__(self, folder: Path | str) -> None:
        self._project = open_project(checked_path(folder, "the folder of a project"))

    def __repr__(self) -> str:
        status = self.status()
        answered = f"{status.labeled} of {status.sentences} sentences labeled"
        return f"Project({str(self.folder)!r}, tags={list(self.tags)}, {answered})"

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self._project.folder

    @property
    def name(self) -> str:
        """Its name."""
        return self._project.settings.name

    @property
    def tags(self) -> tuple[str, ...]:
        """The types of spans that are labeled."""
        return self._project.settings.tags

    @property
    def guidelines(self) -> str:
        """What its guidelines say now."""
        return self._project.guidelines

    def labels(self) -> Iterator[Sentence]:
        """Yield the labeled sentences, adjudicated where people disagreed, and those of the seed.

        Where an annotator was sure of a part only, the other tokens have no label.
        """
        return read_labeled(self._project.store)

    def sentences(self) -> Iterator[Sentence]:
        """Yield all sentences but the discarded ones, without their labels."""
        return read_sentences(self._project.store)

    def status(self) -> ProjectStatus:
        """Return how much is labeled, and how good the newest model is."""
        store = self._project.store
        counts, newest = read_counts(store), next(iter(read_generations(store, 1)), None)
        return ProjectStatus(
            sentences=counts.sentences,
            labeled=counts.labeled,
            skipped=counts.skipped,
            discarded=counts.discarded,
            seed=counts.seed,
            models=0 if newest is None else newest.number,
            audit=Estimates(store).progress().audit,
        )

    def tagger(self, device: str | None = None) -> Tagger:
        """Return the newest tagger that was trained on its labels."""
        return Tagger.load(self.folder, device)

    def guarantee(self, alpha: float) -> Guarantee:
        """Return how many open sentences may be accepted so that at most `alpha` have an error.

        It needs the predictions that the page Review or `bulk predict` asks for.
        """
        predictions = predictions_of(self._project.models)
        learns = self._project.settings.audit_train
        return preview(self._project.store, predictions, alpha, learns).guarantee

    def accept(self, alpha: float, annotator: str) -> Accepted:
        """Accept these sentences in the name of an annotator, as a batch that `undo` takes back."""
        person = find_annotator(self._project.store, annotator)
        if person is None:
            raise NotFoundError("annotator", annotator)
        predictions = predictions_of(self._project.models)
        learns = self._project.settings.audit_train
        return accept(self._project.store, predictions, person.id, alpha, learns)

    def undo(self, batch: int) -> Undone:
        """Take back answers that were given in one go; what was changed since stays."""
        accepted = read_batch(self._project.store, batch)
        return undo_batch(self._project.store, batch, accepted.annotator_id)

    def close(self) -> None:
        """Close it."""
        self._project.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
