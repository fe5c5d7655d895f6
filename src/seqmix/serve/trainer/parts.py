"""What a trainer is built from; `app` chooses the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.loop.learner import ActiveLearner, Fit
from seqmix.protocols import Tagger
from seqmix.query.spec import PolicySpec
from seqmix.serve.sources.filling import Build
from seqmix.serve.trainer.suggestions import Guess

LEAST = 40  # labeled sentences with which teachers begin; docs/defaults.md has figures from 50 on


class AdaptedEncoder(Protocol):
    """An encoder that reads the text of the project."""

    @property
    def name(self) -> str:
        """What tells an encoder that read it from others; empty before there is one."""
        ...

    def due(self, size: int) -> bool:
        """Whether there is text to read, in a project with this many sentences."""
        ...

    def read(self, size: int, between: Callable[[], None]) -> None:
        """Read the text; `between` is called after each step."""
        ...


@dataclass(frozen=True)
class Parts:
    """What the trainer is built from."""

    learner: Callable[..., ActiveLearner]  # of a pool and the state so far
    untrained: Callable[[np.random.Generator], Tagger]  # the encoder alone, for embeddings
    spread: PolicySpec  # the order before there are labels
    paths: Callable[[Tagger, Sequence[Sentence]], Iterator[Guess]]
    without_entity: float = 0.0  # share of the sentences in which the model finds nothing
    apart: int = 0  # questions in a row among which a template is at most once; 0 and 1 are off
    start: Tagger | None = None  # a tagger to begin with; a warm recipe trains it further
    most: int = 20_000  # sentences that are scored; of a larger pool, a random sample
    first: int = 2_000  # the same before there are labels
    quick: int | None = None  # optimizer steps of the first model, which a full one follows at once
    steps: Callable[[int], int] | None = None  # of later models, by how many sentences are labeled
    reading: AdaptedEncoder | None = None  # stage 2, if the settings want it
    # stage 3: labeled and unlabeled sentences, a tagger to begin with, what to call between steps
    teach: Callable[..., Sequence[Sentence]] | None = None
    student: Callable[[Sequence[Sentence]], Fit] | None = None  # who learns from these, too
    suggest: Build | None = None  # what suggests beside the model
    least: int = LEAST  # labeled sentences with which teachers begin
