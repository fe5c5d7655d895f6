"""The state of a sweep: the files in its directory, of which only the runs are written elsewhere.

results.csv     one row per round of each finished run; enough to resume on another machine
failed.csv      the runs that failed last time, with the last line of their traceback
sweep.log       the messages of the command, with whole tracebacks
runs/ARM/seed-N the run directories
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from seqmix.app.console import duration, err, safe, say
from seqmix.app.provenance import DATA, MODELS, summary
from seqmix.app.sweep.spec import Arm, Experiment, Job
from seqmix.app.sweep.table import (
    DIGESTS,
    Row,
    Runs,
    ordered,
    read_runs,
    rows_of,
    write_results,
)
from seqmix.app.sweep.worker import finished
from seqmix.data.files import open_plain, write_text
from seqmix.errors import RunError
from seqmix.scale.local_executor import JobEvent

_EVERY = 5.0  # seconds between two writings of results.csv


class SweepState:
    """What is finished, what failed and how much is left."""

    def __init__(
        self,
        experiment: Experiment,
        out: Path,
        reuse: Sequence[Path] = (),
        inputs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.experiment, self.out = experiment, out
        self.digests = {  # of data and models by arm, as they are now
            name: (summary(digests, DATA), summary(digests, MODELS))
            for name, digests in (inputs or {}).items()
        }
        self.runs: Runs = read_runs(out / "results.csv") if (out / "results.csv").exists() else {}
        self.failures: dict[tuple[str, int], str] = _read_failures(out / "failed.csv")
        self.total = self.before = self.done = self.failed = 0
        self._start = self._saved = time.monotonic()
        self._status = err.status("starting") if err.is_terminal else None
        for arm in experiment.arms:
            self._find(arm)
        for path in (out / "results.csv", *reuse):
            self._share(path, self.runs if path == out / "results.csv" else read_runs(path))

    def has(self, job: Job) -> bool:
        """Return whether this run is finished."""
        return (job.experiment, job.arm.name, job.seed) in self.runs

    def begin(self, jobs: Sequence[Job], todo: Sequence[Job], workers: int) -> None:
        """Report that the sweep starts, or resumes."""
        self.total, self.before = len(jobs), len(jobs) - len(todo)
        self._start = time.monotonic()
        there = f", {self.before} of them there already" if self.before else ""
        self.report(f"{self.experiment.title}: {self.total} runs{there}; {workers} at a time")
        unknown = sum(
            self._unknown(job.arm, self.runs[job.experiment, job.arm.name, job.seed])
            for job in jobs
            if self.has(job)
        )
        if unknown:
            self.report(
                f"{unknown} finished runs have no digest of what they read: "
                "whether that was the same data and models is unknown"
            )
        if self._status is not None:
            self._status.start()

    def on_event(self, event: JobEvent[Job]) -> None:
        """Record what a worker reports."""
        job = event.job
        if event.kind == "emitted":
            if self._status is not None:
                record = event.value
                text = f"{self._count()}; {job}, round {record.number}: {record.figures}"
                self._status.update(safe(text))
            return
        if event.kind == "done":
            self.done += 1
            self._take(job)
            self.failures.pop((job.arm.name, job.seed), None)
            last = self.runs[job.experiment, job.arm.name, job.seed][-1]
            figures = _figures({name: last[f"{name}_f1"] for name in ("dev", "test")})
            self.report(f"{self._count()}; {job}: {figures} with {last['labeled']} sentences")
        else:
            self.failed += 1
            self.failures[job.arm.name, job.seed] = str(event.value)
            self.report(f"{self._count()}; {job} failed: {event.value}", event.trace)
            _write_failures(self.out / "failed.csv", self.failures)
        if time.monotonic() - self._saved >= _EVERY:
            self.save()

    def end(self) -> None:
        """Write all files and end the status line."""
        if self._status is not None:
            self._status.stop()
        self.save()
        if self.failures or (self.out / "failed.csv").exists():
            _write_failures(self.out / "failed.csv", self.failures)

    def save(self) -> None:
        """Replace results.csv."""
        write_results(self.out / "results.csv", ordered(self.runs, self.experiment))
        self._saved = time.monotonic()

    def _find(self, arm: Arm) -> None:
        """Add finished runs that results.csv lacks; refuse results of another config."""
        for folder in sorted((self.out / "runs" / arm.home).glob("seed-[0-9]*")):
            job = Job(self.experiment.name, arm, int(folder.name.removeprefix("seed-")))
            rows = self.runs.get((job.experiment, arm.name, job.seed))
            if (rows is None or rows[0]["config"] != arm.digest) and finished(folder):
                self.runs[job.experiment, arm.name, job.seed] = rows_of(job, folder)
        table = self.out / "results.csv"
        for (experiment, name, seed), rows in self.runs.items():
            if (experiment, name) != (self.experiment.name, arm.name):
                continue
            config, data = rows[0]["config"], rows[0]["data"]
            if (config, data) != (arm.digest, arm.data):
                raise RunError(
                    f"{table} has {name}, seed {seed} with the config {config} on {data}, "
                    f"which is now {arm.digest} on {arm.data}; "
                    "give another --out, or remove those rows"
                )
            self._refuse_other_inputs(arm, rows, table)

    def _refuse_other_inputs(self, arm: Arm, rows: Sequence[Row], place: Path) -> None:
        """Refuse a run on other data or models than the arm's; one without digests passes."""
        kinds = (("data", f"called {arm.data}"), ("models", "under the names in the config"))
        now = self.digests.get(arm.name, (None, None))
        for column, digest, (what, which) in zip(DIGESTS, now, kinds, strict=True):
            before = rows[0][column]
            if None not in (before, digest) and before != digest:
                run = f"{rows[0]['arm']}, seed {rows[0]['seed']}"
                raise RunError(
                    f"{place} has {run} on other {what} {which}: "
                    f"{column} {before}, which is now {digest}; "
                    f"give another --out, or the {what} of those runs"
                )

    def _unknown(self, arm: Arm, rows: Sequence[Row]) -> bool:
        """Return whether a run lacks a digest that could be compared."""
        now = self.digests.get(arm.name, (None, None))
        return any(
            digest is not None and rows[0][column] is None
            for column, digest in zip(DIGESTS, now, strict=True)
        )

    def _share(self, path: Path, runs: Runs) -> None:
        """Take rows of the same config, data and seed that have another name."""
        for (_, _, seed), rows in list(runs.items()):
            for arm in self.experiment.arms:
                if (rows[0]["config"], rows[0]["data"]) == (arm.digest, arm.data):
                    self._refuse_other_inputs(arm, rows, path)
                    self.runs.setdefault(
                        (self.experiment.name, arm.name, seed),
                        [self._named(row, arm) for row in rows],
                    )

    def _take(self, job: Job) -> None:
        rows = rows_of(job, self.out / job.folder)
        self._refuse_other_inputs(job.arm, rows, self.out / job.folder)
        for arm in self.experiment.arms:
            if arm.home == job.arm.home:
                self.runs[job.experiment, arm.name, job.seed] = [
                    self._named(row, arm) for row in rows
                ]

    def _named(self, row: Row, arm: Arm) -> Row:
        return {**row, "experiment": self.experiment.name, "arm": arm.name, "preset": arm.preset}

    def _count(self) -> str:
        ended = self.done + self.failed
        left = self.total - self.before - ended
        seconds = (time.monotonic() - self._start) / ended * left if ended else 0.0
        failed = f", {self.failed} failed" if self.failed else ""
        ahead = f", about {duration(seconds)} left" if seconds and left else ""
        return f"{self.before + self.done} of {self.total} runs{failed}{ahead}"

    def report(self, text: str, trace: str = "") -> None:
        """Print a message and add it to sweep.log."""
        say(text)
        with open_plain(self.out / "sweep.log", "ab") as log:
            log.write(
                f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n{trace}".encode("utf-8", "replace")
            )


def _figures(scores: dict[str, float | None]) -> str:
    return ", ".join(
        f"{name} F1 {100 * f1:.2f}"
        for name in ("dev", "test")
        if (f1 := scores.get(name)) is not None
    )


def _read_failures(path: Path) -> dict[tuple[str, int], str]:
    if not path.exists():
        return {}
    try:
        records = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
        return {(record["arm"], int(record["seed"])): record["error"] for record in records}
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise RunError(
            f"{path} is damaged: {error}; remove it, it only lists what failed"
        ) from error


def _write_failures(path: Path, failures: dict[tuple[str, int], str]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["arm", "seed", "error"])
    writer.writerows([arm, seed, error] for (arm, seed), error in sorted(failures.items()))
    write_text(path, out.getvalue())
