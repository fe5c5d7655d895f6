"""Corpora nobody would make on purpose, and the real command over them, with the memory it took."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from seqmix.app.cli import run

_MEASURED = """
import resource, sys
from seqmix.app.cli import run
code = run(sys.argv[1:])
sys.stderr.write(f"\\npeak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}")
sys.exit(code)
"""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, what it printed and said, and its peak memory in MiB."""

    code: int
    out: str
    said: str
    peak: int

    @property
    def error(self) -> str:
        """The one line of a refusal."""
        assert self.code == 2, (self.code, self.out[-500:], self.said[-2000:])
        lines = [line for line in self.said.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1 and "Traceback" not in self.said, self.said[-2000:]
        return lines[0]


def command(*arguments: str | Path, apart: bool = True) -> Outcome:
    """`seqmix …`; in a process of its own its memory is known, in this one it starts at once."""
    if not apart:
        out, said = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(said):
            code = run([str(argument) for argument in arguments])
        return Outcome(code, out.getvalue(), said.getvalue(), 0)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *map(str, arguments)],
        capture_output=True,
        env=environment,
        check=False,
    )
    said, _, peak = done.stderr.decode().rpartition("\npeak ")
    return Outcome(done.returncode, done.stdout.decode(), said, int(peak or 0))


def endless(path: Path, tokens: int) -> Path:
    """One sentence of so many tokens, a name every tenth."""
    with path.open("w", encoding="utf-8") as file:
        for at in range(tokens):
            file.write("Lena\tB-PER\n" if at % 10 == 0 else f"w{at % 50}\tO\n")
    return path


def many_types(path: Path, types: int) -> Path:
    """So many types of span, each once, ten a sentence."""
    with path.open("w", encoding="utf-8") as file:
        for at in range(types):
            file.write(f"word\tB-T{at}\n" + ("\n" if at % 10 == 9 else ""))
    return path


def long_token(path: Path, letters: int) -> Path:
    """One token of so many letters, and two that are no letters, beside good ones."""
    path.write_text(
        f"Lena\tB-PER\n{'ab' * (letters // 2)}\tO\n{'.-' * (letters // 2)}\tO\n\n"
        + "Lena\tB-PER\nleft\tO\n\n" * 4,
        encoding="utf-8",
    )
    return path
