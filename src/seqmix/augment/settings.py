"""The settings of augmentation: what SeqMix mixes, and what a round asks for."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, SkipValidation

from seqmix.augment.score_range import ScoreRange, parse_score_range
from seqmix.errors import ConfigError
from seqmix.settings import Count, Natural, Positive, Rate, Share, settings

Variant = Literal["whole", "sub", "label"]
Method = Literal["mention", "token", "shuffle", "duplicate"]
Combined = Literal["mention+sub"]
AnyVariant = Literal["none", Variant, Method, Combined]
Base = Literal["e", "2"]
Distance = Literal["l2", "cosine", "csls"]
TableSource = Literal["encoder", "trained", "contextual"]

VARIANTS: tuple[Variant, ...] = get_args(Variant)
METHODS: tuple[Method, ...] = get_args(Method)
COMBINED: Combined = "mention+sub"
AUGMENTERS = (*VARIANTS, *METHODS, COMBINED)
DISTANCES: tuple[Distance, ...] = get_args(Distance)
TABLES: tuple[TableSource, ...] = get_args(TableSource)


def _readable(value: Any) -> Any:
    if not isinstance(value, str | ScoreRange | None):
        raise ValueError(f"a score range must be text such as 0x,400x; got {value!r}")
    try:
        if isinstance(value, str):
            parse_score_range(value)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return value


def base_of(variant: str) -> Base:
    """Return a variant's base of the perplexity: the paper's 2 for whole sentences, else e."""
    return "2" if variant == "whole" else "e"


@settings
class Mixing:
    """How SeqMix pairs, mixes and accepts; the values are the paper's for CoNLL-03."""

    variant: Variant = "sub"
    """What is mixed."""
    window: Count = 5
    """Tokens in a window (s)."""
    density: Share = 0.6
    """Share of valid tags a window needs (η0)."""
    alpha: Positive = 8.0
    """λ ~ Beta(α, α)."""
    score_range: Annotated[SkipValidation[ScoreRange | str | None], AfterValidator(_readable)] = (
        "0x,400x"
    )
    """What is accepted: 0x,400x (how much less probable a new word may make its parent), 0,500
    (perplexities), 5%,95% (quantiles of the real sentences) or off."""
    windows: Literal["fixed", "spans"] = "fixed"
    """Windows of a fixed length, or the spans of entities."""
    partners: Literal["random", "similar"] = "random"
    """How partners are drawn: at random, or among the nearest in embedding space."""
    in_context: Annotated[int, Field(ge=0, le=1000)] = 0
    """Nearest entries among which a masked LM chooses each new word; 0: the nearest one."""
    keep_case: bool = False
    """Give a new word the casing of the word it replaces."""
    max_uses: Count | None = None
    """How often one sentence may be a parent; by default twice an even share, and at least 3."""
    weight: Share | None = None
    """A fixed λ in place of a random one."""

    @property
    def limits(self) -> ScoreRange | None:
        """The score range as numbers; None where it is off."""
        value = self.score_range
        return parse_score_range(value) if isinstance(value, str) else value


@settings
class AugmentSettings(Mixing):
    """Generated sentences: how many, how, and with which models."""

    variant: AnyVariant = "sub"  # type: ignore[assignment]
    """How sentences are generated: by SeqMix (whole, sub, label), a baseline, half of each
    (mention+sub), or not at all."""
    rate: Rate | Annotated[list[Rate], Field(min_length=1)] = 0.2
    """New sentences for each labeled one (r); a list has one number per round."""
    alpha: Positive | Annotated[list[Positive], Field(min_length=1)] = 8.0  # type: ignore[assignment]
    """λ ~ Beta(α, α); a list has one number per round."""
    base: Base | None = None
    """Base of the perplexity; by default 2 for whole, as in the paper, else e."""
    lm: str = "starter"
    """The language model that scores: starter, a Hugging Face name or a folder."""
    table: TableSource = "encoder"
    """Where the embeddings of words come from."""
    distance: Distance = "l2"
    """How near two embeddings are."""
    seen: bool = False
    """Generate only words that occur in the labeled or unlabeled text."""
    alphabetic: bool = False
    """Generate only words made of letters."""
    min_count: Natural = 0
    """Generate only words that occur at least this often in that text."""
    guard: Natural = 0
    """Folds of the comparison that leaves augmentation out where it hurts; 0 is off."""

    def __post_init__(self) -> None:
        value = self.score_range
        object.__setattr__(self, "score_range", "off" if value is None else str(value))
        object.__setattr__(self, "base", self.base or base_of(self.variant))

    @property
    def mixes(self) -> bool:
        """Whether sentences are mixed, for which a table and a language model are needed."""
        return self.variant in (*VARIANTS, COMBINED)
