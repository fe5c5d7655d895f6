"""New labeled sentences from labeled ones: SeqMix, and the baselines it is compared with."""

from seqmix.augment.discriminator import Perplexity, ScoreRange
from seqmix.augment.replacement import Replacement
from seqmix.augment.seqmix import SeqMix
from seqmix.augment.table import Table, contextual_table, encoder_table

__all__ = ["Perplexity", "Replacement", "ScoreRange", "SeqMix", "Table", "contextual_table", "encoder_table"]
