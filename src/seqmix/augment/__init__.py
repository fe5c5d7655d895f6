"""New labeled sentences from labeled ones: SeqMix, and baselines it is compared with."""
