"""For all tests: one thread each, since two wait for each other on shared cores; and a slow example of Hypothesis is no failure."""

import atexit
import os
import shutil
import tempfile

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before torch is loaded; processes that tests start inherit it

os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(
    prefix="seqmix-tests-"
)  # which databases a user knows is not for tests to change

from hypothesis import settings

settings.register_profile("seqmix", deadline=None)
settings.load_profile("seqmix")
atexit.register(shutil.rmtree, os.environ["XDG_CONFIG_HOME"], ignore_errors=True)
