"""Hypothesis without a deadline: on shared cores a slow example is no failure."""

from hypothesis import settings

settings.register_profile("seqmix", deadline=None)
settings.load_profile("seqmix")
