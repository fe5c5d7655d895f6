"""Commands in children of this process, which has loaded everything: a kill costs half a second."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, or minus the signal that ended it; and what it said."""

    code: int
    said: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass
class Child:
    """A child that runs."""

    pid: int
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def alive(self) -> bool:
        """Whether it runs; one that has ended is left to `end`."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def kill(self) -> Ended:
        os.kill(self.pid, signal.SIGKILL)
        return self.end()

    def end(self, seconds: float = 120.0) -> Ended:
        """Wait for its end; one that does not end is a failure of the harness's subject too."""
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise TimeoutError(f"it did not end in {seconds:g} s: {self.said[-500:]}")
            time.sleep(0.002)
        _, status = os.waitpid(self.pid, 0)
        return Ended(os.waitstatus_to_exitcode(status), self.said)


def start(work: Callable[[], int | None], log: Path) -> Child:
    """Let a child do this; what it says goes to the log."""
    log.write_text("")  # now: what an earlier child has said must not be taken for this one's
    pid = os.fork()
    if pid:
        return Child(pid, log)
    code = 70  # of an exception that nobody expected
    try:
        handle = os.open(log, os.O_WRONLY | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        code = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(work: Callable[[], int | None], log: Path, kill_after: float | None = None) -> Ended:
    """The same, to its end; with `kill_after`, killed if it has not ended after so many seconds."""
    child = start(work, log)
    if kill_after is not None:
        deadline = time.monotonic() + kill_after
        while time.monotonic() < deadline and child.alive():
            time.sleep(0.001)
        if child.alive():
            return child.kill()
    return child.end()
