"""For all tests: one thread each, their own configuration folder, temporary folders in memory."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings

# Two threads wait for each other on shared cores; set before torch is loaded, and inherited by the
# processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests must not change which databases the user has allowed.
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="seqmix-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CONFIG_HOME"], ignore_errors=True)

# Runs and stores sync each file they write, which a disk takes its time for: what is synced and
# what is not is tested by the faults, which look at the calls.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

settings.register_profile("seqmix", deadline=None)  # a slow example is not a failure
settings.load_profile("seqmix")
