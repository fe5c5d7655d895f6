"""The tagger: an encoder with a linear or CRF head, trained on hard, soft and missing tag rows."""

from seqmix.tagger.tagger import Path, Tagger
from seqmix.tagger.training import Settings

__all__ = ["Path", "Settings", "Tagger"]
