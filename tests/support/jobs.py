"""Work for worker processes that is done in a blink.

It is apart from the tests, since a worker imports the module its work stands in.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from seqmix.errors import ConfigError
from seqmix.scale.local_executor import Emit, run_jobs


def do(job: str, emit: Emit) -> tuple[str, int]:
    """`word` or `word argument`."""
    word, _, argument = job.partition(" ")
    emit(word)
    if word == "refuse":
        raise ConfigError("not like this")
    if word == "break":
        raise ZeroDivisionError("by nothing\nat all")
    if word == "die" or (word == "die-once" and not Path(argument).exists()):
        if argument:
            Path(argument).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "sleep":
        Path(argument).write_text(str(os.getpid()))
        time.sleep(600)
    if word == "waits":
        return os.environ.get("OMP_WAIT_POLICY", ""), os.getpid()
    if word == "threads":
        return os.environ["OMP_NUM_THREADS"], os.getpid()
    return word, os.getpid()


if __name__ == "__main__":
    try:
        run_jobs(sys.argv[1:], do, 2, lambda event: None)
    except KeyboardInterrupt:
        sys.exit(130)
