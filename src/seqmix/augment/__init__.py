"""New labeled sentences from labeled ones: SeqMix (`seqmix.py`) and baselines (`replacement.py`)."""
