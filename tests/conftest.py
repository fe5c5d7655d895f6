"""For all tests: one thread each, since two wait for each other on shared cores; and a slow example of Hypothesis is no failure."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded; processes that tests start inherit it

from hypothesis import settings

settings.register_profile("seqmix", deadline=None)
settings.load_profile("seqmix")
