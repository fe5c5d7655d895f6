"""The server's side of the trainer: start its process, restart it when it dies, stop it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from seqmix.data.files import open_plain
from seqmix.errors import DataError

_LONGEST = 600.0  # seconds between two starts
_HEALTHY = 300.0  # seconds after which a death counts as the first one
_LOG = 1_000_000  # bytes
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def trainer_of(folder: Path) -> Supervisor:
    """Return a supervisor of the trainer of a project; it leaves a core for the server."""
    command = [sys.executable, "-m", "seqmix.app.trainer_process", str(folder), str(os.getpid())]
    threads = max(1, (os.cpu_count() or 1) - 1)
    return Supervisor(command, folder / "trainer.log", threads=threads)


class Supervisor:
    """Keeps a command running."""

    def __init__(
        self, command: Sequence[str], log: Path, wait: float = 10.0, threads: int | None = None
    ) -> None:
        """Set the command; `threads` limits its matrix products by environment variables."""
        self.command, self.log, self.wait = list(command), log, wait
        self.environment = os.environ | (
            {} if threads is None else dict.fromkeys(_THREADS, str(threads))
        )
        self.starts = 0
        self._trouble: str | None = None
        self._stop = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Start the command.

        subtle: the kernel ties a child to the thread that started it, so that thread must live as
        long as the server.
        """
        self._thread.start()

    def stop(self, patience: float = 3.0) -> None:
        """Stop the command and wait until it has ended."""
        self._stop.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(patience)
        self._thread.join(patience)

    def trouble(self) -> str | None:
        """Return why it does not run, in words; None when it does."""
        return self._trouble

    @property
    def pid(self) -> int | None:
        """The id of the running process."""
        return (
            self._process.pid
            if self._process is not None and self._process.poll() is None
            else None
        )

    def _watch(self) -> None:
        wait = self.wait
        while not self._stop.is_set():
            start = time.monotonic()
            status = self._run()
            if self._stop.is_set():
                return
            wait = self.wait if time.monotonic() - start > _HEALTHY else wait
            self._trouble = (
                f"the trainer ended ({status}) and is restarted in {wait:g} s;"
                f" {self.log.name} in the project says why"
            )
            self._stop.wait(wait)
            wait = min(2 * wait, _LONGEST)

    def _run(self) -> str:
        try:
            if self.log.exists() and self.log.lstat().st_size > _LOG:
                self.log.unlink()
            with open_plain(self.log, "ab", 0o600) as log:
                # A separate process group, so that Ctrl-C reaches only the server, which then stops
                # its child. Not a separate session: Linux divides the cores by session first, and
                # being nice would have no effect.
                self._process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    process_group=0,
                    env=self.environment,
                )
        except OSError as error:
            return str(error.strerror)
        except DataError as error:
            return error.expected
        self.starts += 1
        self._trouble = None
        if self._stop.is_set():  # stopped while it was starting
            self._process.terminate()
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"status {code}"
