"""One target in a process of its own: atheris drives it, and findings are written down.

    python -m fuzz.worker TARGET RUNS SEED FOLDER LONGEST

What is found is passed over, so that the process goes on. FOLDER gets state.json (how far it is),
findings/ (inputs with their tracebacks) and corpus/ (inputs that reached something new).
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["seqmix"], enable_loader_override=False):
    from fuzz.mutation import mutated
    from fuzz.target import Finding, Target, attack
    from fuzz.targets import TARGETS

SECONDS = 5.0  # of CPU time one input may take
_DEAD = 60  # seconds of the clock after which an input is given up on
_MEMORY = 1024  # MiB the process may grow
_EVERY = 200  # executions between two writings of the state


@dataclass
class State:
    """How far a worker is."""

    executions: int = 0
    slowest: float = 0.0  # seconds of CPU time
    grown: int = 0  # MiB
    findings: dict[str, str] = field(
        default_factory=dict
    )  # what was found, by the name of its input


class Worker:
    """Counts, measures, and keeps what it finds."""

    def __init__(self, target: Target, runs: int, place: Path, folder: Path) -> None:
        self.target, self.runs, self.place, self.folder = target, runs, place, folder
        self.state, self._seen = State(), set[str]()
        self.before = _memory()

    def once(self, data: bytes) -> None:
        """One execution."""
        start = time.process_time()
        try:
            attack(self.target, data, self.place)
        except Exception as error:
            self._found(data, _where(error), traceback.format_exc())
        spent = time.process_time() - start
        if spent > SECONDS:
            self._found(data, "too slow", f"{spent:.1f} s for {len(data)} bytes\n")
        self.state.executions += 1
        self.state.slowest = max(self.state.slowest, spent)
        if self.state.executions % _EVERY == 0 or self.state.executions >= self.runs:
            self.save()

    def save(self) -> None:
        """Write the state down: libFuzzer ends the process without a word."""
        self.state.grown = _memory() - self.before
        (self.folder / "state.json").write_text(json.dumps(asdict(self.state)))

    def _found(self, data: bytes, what: str, trace: str) -> None:
        if what in self._seen:
            return
        self._seen.add(what)
        name = sha256(data).hexdigest()[:12]
        self.state.findings[name] = what
        (self.folder / "findings").mkdir(exist_ok=True)
        (self.folder / "findings" / name).write_bytes(data)
        (self.folder / "findings" / f"{name}.txt").write_text(
            trace, encoding="utf-8", errors="backslashreplace"
        )


def main(name: str, runs: int, seed: int, folder: Path, longest: int) -> None:
    """Fuzz until so many executions are done. It does not return."""
    target = TARGETS[name]
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    for data in target.seeds():
        (corpus / sha256(data).hexdigest()[:12]).write_bytes(data)
        attack(target, data, place)
    worker = Worker(target, runs, place, folder)

    def mutate(data: bytes, limit: int, seed: int) -> bytes:
        rng = random.Random(seed)
        made = mutated(data, rng) if rng.random() < 0.6 else atheris.Mutate(data, limit)
        return bytes(made[:limit])

    flags = {
        "runs": runs,
        "seed": seed,
        "max_len": longest,
        "timeout": _DEAD,
        "rss_limit_mb": worker.before + _MEMORY,
        "artifact_prefix": f"{folder}/died-",
        "verbosity": 0,
        "reload": 0,
    }
    atheris.Setup(
        [sys.argv[0], *(f"-{key}={value}" for key, value in flags.items()), str(corpus)],
        worker.once,
        custom_mutator=mutate,
    )
    atheris.Fuzz()


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _where(error: Exception) -> str:
    """The kind of error and the last place in our own code it passed through: one finding each."""
    own = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "seqmix" in frame.filename
    ]
    said = re.sub("[0-9]+", "N", str(error).partition(":")[0])
    at = (
        f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        if own and not isinstance(error, Finding)
        else said
    )
    return f"{type(error).__name__} at {at}"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))
