"""The tagger: an encoder with a linear or CRF head, trained on hard, soft and missing tag rows."""

from seqmix.tagger.decoding import Path
from seqmix.tagger.settings import Settings
from seqmix.tagger.tagger import Tagger

__all__ = ["Path", "Settings", "Tagger"]
