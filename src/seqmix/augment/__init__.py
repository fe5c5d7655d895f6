"""New labeled sentences from labeled ones: SeqMix (`seqmix.py`), and the baselines it is compared with (`replacement.py`)."""
