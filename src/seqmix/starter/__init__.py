"""The embedded encoder and language model, and the loader of any other.

`starter` is the default model name: a 6-layer, 384-wide BERT and GPT-2 with the vocabulary of
bert-base-cased, pretrained on English Wikipedia and stored as int8.
docs/models.md is their card, `scripts/pretrain_starter.py` the recipe.
"""

from seqmix.starter.loader import STARTER, load_encoder, load_language_model

__all__ = ["STARTER", "load_encoder", "load_language_model"]
