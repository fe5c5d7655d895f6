"""How a tagger is trained."""

from __future__ import annotations

from dataclasses import dataclass

from seqmix.errors import ConfigError


@dataclass(frozen=True)
class Settings:
    """How to train: the paper's values, but for the learning rate, which suits the encoder."""

    epochs: int = 10
    steps: int | None = None  # instead of epochs: comparisons are made at equal steps
    lr: float | None = None
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    epsilon: float = 1e-8
    dropout: float = 0.1
    clip: float = 1.0
    max_pieces: int = 128
    mixup: float | None = None  # α of mixup inside each batch: embeddings and tag rows mixed

    def __post_init__(self) -> None:
        least = {"epochs": 1, "steps": 1, "batch_size": 1, "max_pieces": 8}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ConfigError(f"{name} is {value}; it must be at least {bound}")
        check_learning_rate(self.lr)
        for name in ("warmup", "dropout", "weight_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}; it must be at least 0 and below 1"
                )
        for name in ("epsilon", "clip", "mixup"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")

    def total_steps(self, n_sentences: int) -> int:
        """Return the number of optimizer steps for a training set of this size."""
        return self.steps or self.epochs * -(-n_sentences // self.batch_size)


def check_learning_rate(lr: float | None) -> None:
    """Refuse a learning rate outside of (0, 1)."""
    if lr is not None and not 0 < lr < 1:
        raise ConfigError(
            f"lr is {lr}; it must lie between 0 and 1 "
            "(3e-4 suits the starter, 5e-5 larger encoders)"
        )
