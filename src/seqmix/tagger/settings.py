"""How a tagger is trained, checked where it is said."""

from __future__ import annotations

from dataclasses import dataclass

from seqmix.errors import ConfigError


@dataclass(frozen=True)
class Settings:
    """How to train: the paper's values, but for the learning rate, which is the encoder's own when not given."""

    epochs: int = 10
    steps: int | None = None  # overrides epochs: comparisons are made at equal steps
    lr: float | None = None
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    epsilon: float = 1e-8
    dropout: float = 0.1
    clip: float = 1.0
    max_pieces: int = 128
    smoothing: float = (
        0.0  # label smoothing: this share of each tag row is spread evenly over all tags
    )
    mixup: float | None = (
        None  # α of mixup on the fly: words and tag rows of each batch interpolated, nothing written as text
    )

    def __post_init__(self) -> None:
        sizes = {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "max_pieces": self.max_pieces - 7,
        }
        sizes |= {} if self.steps is None else {"steps": self.steps}
        for name, value in sizes.items():
            if value < 1:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}; it must be at least {8 if name == 'max_pieces' else 1}"
                )
        if self.lr is not None and not 0 < self.lr < 1:
            raise ConfigError(
                f"lr is {self.lr}; it must lie between 0 and 1 (3e-4 suits the starter, 5e-5 larger encoders)"
            )
        for name in ("warmup", "dropout", "weight_decay", "smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}; it must be at least 0 and below 1"
                )
        for name in ("epsilon", "clip", "mixup"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")

    def total_steps(self, n_sentences: int) -> int:
        """Optimizer steps for a training set of this size."""
        return self.steps or self.epochs * -(-n_sentences // self.batch_size)
