"""The settings of a tagger's training."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from seqmix.settings import Count, Natural, settings

Head = Literal["linear", "crf"]
HEADS: tuple[Head, ...] = get_args(Head)
LearningRate = Annotated[float, Field(gt=0, lt=1)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
Partners = Literal["sentence", "tag"]
EPOCHS = 10


@settings
class Settings:
    """How a tagger trains; the values are the paper's, except for the learning rate."""

    epochs: Count | None = None
    """Passes over the sentences; by default 10, and in plain training as many as are enough."""
    steps: Count | None = None
    """Optimizer steps in place of epochs."""
    lr: LearningRate | None = None
    """Learning rate; by default 3e-4 for the starter and 5e-5 for other encoders."""
    batch_size: Count = 32
    """Sentences per step."""
    warmup: Fraction = 0.1
    """Share of the steps in which the learning rate rises."""
    weight_decay: Fraction = 0.01
    """Weight decay of AdamW."""
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    """Epsilon of AdamW."""
    dropout: Fraction = 0.1
    """Dropout before the head."""
    clip: Annotated[float, Field(gt=0)] = 1.0
    """Largest norm of a gradient."""
    max_pieces: Annotated[int, Field(ge=8, le=2**31)] = 128
    """Subwords in a window; longer sentences are read in several windows."""
    mixup: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """α of mixup in training: words and tag rows of a batch are interpolated."""
    mixup_layer: Annotated[int, Field(ge=0, le=1000)] = 0
    """The encoder layer before which words are interpolated; 0 is the input embeddings."""
    mixup_partners: Partners = "sentence"
    """What a word is mixed with: the words of another sentence, or any word of the same tag."""

    @property
    def passes(self) -> int:
        """The passes over the sentences where there are no steps."""
        return self.epochs or EPOCHS

    def total_steps(self, n_sentences: int) -> int:
        """Return the optimizer steps for a training set of this size."""
        return self.steps or self.passes * -(-n_sentences // self.batch_size)


@settings
class AdaptSettings:
    """How an encoder is adapted to text."""

    epochs: Count = 6
    """Passes over the text."""
    steps: Count | None = None
    """Optimizer steps in place of epochs."""
    lr: LearningRate | None = None
    """Learning rate; by default 3e-4 for the starter and 5e-5 for other encoders."""
    batch_tokens: Count = 4096
    """Subwords per step; the same on every device, so that results are too."""
    share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of the words that are hidden in each epoch."""
    whole_words: bool = True
    """Hide all subwords of a word together."""
    held_out: Fraction = 0.02
    """Share of the sentences on which the loss is measured."""
    warmup: Fraction = 0.1
    """Share of the steps in which the learning rate rises."""
    weight_decay: Fraction = 0.01
    """Weight decay of AdamW."""
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    """Epsilon of AdamW."""
    clip: Annotated[float, Field(gt=0)] = 1.0
    """Largest norm of a gradient."""
    max_pieces: Annotated[int, Field(ge=8, le=2**31)] = 128
    """Subwords in a window; longer sentences are read in several windows."""
    seed: Natural = 0
    """Random seed, where no generator is given."""
