"""The sections of a config that no other room has: data, tagger, adaptation, query and rounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from seqmix.augment.settings import AnyVariant, AugmentSettings
from seqmix.errors import ConfigError
from seqmix.loop.mixed_lessons import Labels
from seqmix.query.policies import POLICIES
from seqmix.settings import Count, Natural, Positive, Rate, Share, settings
from seqmix.tagger.settings import EPOCHS, Head, LearningRate, Settings


def _policy(name: str) -> str:
    if name not in POLICIES:
        raise ValueError(f"must be one of {', '.join(POLICIES)}; got {name[:80]!r}")
    return name


Policy = Annotated[str, AfterValidator(_policy)]


def _no_guard(folds: int) -> int:
    if folds:
        raise ValueError(
            f"it must be 0, since only what [augment] generates has a guard; got {folds}; "
            "set augment.guard instead"
        )
    return folds


@settings
class Data:
    """How the data folder is read."""

    tag_column: int = -1
    """Column of the tags in CoNLL files; -1 is the last."""
    token_column: int = 0
    """Column of the tokens in CoNLL files."""


@settings
class Tagging:
    """The tagger."""

    encoder: str = "starter"
    """The encoder: starter, a Hugging Face name or a folder."""
    head: Head = "linear"
    """What turns words into tags."""
    device: str | None = None
    """cpu or cuda; by default the best available."""


@settings
class Training(Settings):
    """How each round trains."""

    epochs: Count = EPOCHS
    """Passes over the sentences."""
    min_steps: Annotated[int, Field(ge=0, le=2**31)] = 0
    """Take at least this many optimizer steps, however few the sentences."""
    members: Annotated[int, Field(ge=1, le=100)] = 1
    """Train this many taggers, which differ by their seed, and average their probabilities."""

    def steps_for(self, count: int) -> int:
        """Return the optimizer steps of a round with this many sentences."""
        return self.steps or max(self.min_steps, self.total_steps(count))


@settings
class Adapt:
    """Masked-LM training of the encoder on the text of the pool, before anything else."""

    epochs: Natural = 0
    """Passes over the text; 0 is off."""
    lr: LearningRate | None = None
    """Learning rate; by default 3e-4 for the starter and 5e-5 for other encoders."""


@settings
class Mixed(AugmentSettings):
    """Mixed sentences that the student learns beside what its teachers tagged."""

    variant: AnyVariant = "none"
    """How they are generated, as in augment; none is off."""
    alpha: Positive = 8.0
    """λ ~ Beta(α, α)."""
    guard: Annotated[int, AfterValidator(_no_guard)] = 0
    """Always 0, since only what augment generates has a guard."""
    rate: Rate = 1.0
    """Mixed sentences for each one that the teachers learned from."""
    score_range: str = "off"
    """What a language model accepts, as in augment."""
    labels: Labels = "mixed"
    """Their tags: mixed as their words are, or what the teachers say."""
    band: tuple[Share, Share] = (0.0, 1.0)
    """Keep those between two quantiles of the teachers' agreement with the mixed tags."""
    loss_weight: Annotated[float, Field(gt=0, le=1)] = 1.0
    """How much each counts in the student's loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.band[0] >= self.band[1]:
            raise ConfigError(f"mixed.band must rise; got {list(self.band)}")


@settings
class Query:
    """Which sentences are asked for."""

    policy: Policy = "nte"
    """The query policy."""
    size: Count | Annotated[list[Count], Field(min_length=1)] = 100
    """Sentences per round; a list has one number per round."""
    diverse: bool = False
    """Spread the sentences over the pool."""
    apart: Annotated[int, Field(ge=0, le=1000)] = 0
    """Ask for a template at most once among this many questions in a row; 0 and 1 are off."""
    without_entity: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of sentences in which the tagger finds nothing."""
    tokens: Count | None = None
    """A budget in tokens per round; size is then the largest number of sentences."""
    part: Annotated[int, Field(ge=0, le=2**31)] = 0
    """Ask for this many tokens of each sentence, where the policy scores them highest; 0: all."""


@settings
class Loop:
    """The rounds."""

    seed_size: Count = 200
    """Labeled sentences to begin with."""
    rounds: Annotated[int, Field(ge=0, le=100_000)] = 5
    """Rounds after the seed set."""
    slice: Count | None = None
    """Use this many sentences of the training data, drawn at random."""
    warm: bool = False
    """Continue from the last round's tagger instead of the pretrained encoder."""
    match_steps: bool = True
    """Give arms without augmentation the optimizer steps of those with it."""
    stop_sentences: int | None = None
    """Stop at this many labeled sentences."""
    stop_tokens: int | None = None
    """Stop at this many labeled tokens."""
    stop_agreement: Annotated[float, Field(gt=0, le=1)] | None = None
    """Stop when two rounds' taggers agree this much on the pool."""
    stop_uncertainty: Annotated[float, Field(gt=0)] | None = None
    """Stop when no sentence of the pool is this uncertain."""
