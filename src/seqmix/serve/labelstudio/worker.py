"""What happens in the background: when a round is due, a process of its own runs it; then its tagger is loaded and its ranking sent on.

Nothing here makes Label Studio wait. A round is due when enough labels came or changed since the last training and nobody is in the middle
of sending more, or when the "Start training" button was pressed; before there are labels, when there are tasks to rank.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from seqmix.errors import SeqMixError
from seqmix.serve.labelstudio.answers import Answers, Counts
from seqmix.serve.labelstudio.client import Link
from seqmix.serve.labelstudio.labeling import Labeling
from seqmix.serve.labelstudio.rounds import Rank, Round, Rounds
from seqmix.serve.labelstudio.tasks import Json, Suggesting, sentence_of, suggestions

_BATCH = 1000  # new tasks that are given their place at a time
_RETRY = 30.0  # seconds before Label Studio's API is tried again


class Job(Protocol):
    """A process that runs one round, as `multiprocessing.Process` is."""

    @property
    def exitcode(self) -> int | None:
        """None while it runs."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        ...

    def terminate(self) -> None:
        """End it now."""
        ...


@dataclass(frozen=True)
class Current:
    """The last round and its tagger; no tagger while nothing is learned and none was given."""

    round: Round | None
    tagger: Suggesting | None


class Worker:
    """One thread. `start` begins a round; `load` gives the tagger in a folder; `given` is the tagger to begin with."""

    def __init__(
        self,
        answers: Answers,
        rounds: Rounds,
        start: Callable[[], Job],
        load: Callable[[Path], Suggesting],
        given: Suggesting | None = None,
        link: Link | None = None,
        min_new: int = 10,
        settle: float = 2.0,
    ) -> None:
        self.answers, self.rounds, self.link = answers, rounds, link
        self._start, self._load, self._given, self._min_new, self._settle = (
            start,
            load,
            given,
            min_new,
            settle,
        )
        self.current = Current(None, given)
        self.phase, self.error, self.link_error = "waiting", "", ""
        self._loading, self._tagging = (
            threading.Lock(),
            threading.Lock(),
        )  # subtle: a tokenizer must not be used by two threads at once
        self._asked = self._fetched = False
        self._failed: tuple[int, int] | None = None  # (changes, tasks) at which a round failed
        self._retry, self._topped = 0.0, 0
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="label studio worker", daemon=True)

    def start(self) -> None:
        """Begin. The last round's tagger is loaded first, so that the first prediction need not wait for it."""
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """End, and a round that is running with it: what it did is lost, not what people said."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(15)

    def notice(self, train: bool = False) -> None:
        """Something has changed; `train` asks for a round now."""
        self._asked |= train
        self._wake.set()

    def due(self, counts: Counts) -> bool:
        """Whether a round should begin."""
        last = self.current.round
        trained = last is not None and last.kind == "trained"
        pending = counts.changes - (last.changes if last is not None and trained else 0)
        if not counts.tasks or self.answers.labeling is None:
            return False
        if self._asked:
            return True
        if (counts.changes, counts.tasks) == self._failed or (
            counts.quiet < self._settle and pending < 2 * self._min_new
        ):
            return False
        if counts.labeled and pending >= self._min_new:
            return True
        return not trained and counts.tasks >= 2 * (0.5 if last is None else last.tasks)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                busy = self._step()
            except Exception as error:  # the thread must outlive whatever goes wrong in it
                self.phase, self.error, busy = "waiting", f"{type(error).__name__}: {error}", False
            self._wake.wait(
                0.0
                if busy
                else max(0.1, self._settle / 4)
                if self.answers.quiet < 2 * self._settle
                else 5.0
            )
            self._wake.clear()

    def _step(self) -> bool:
        counts = self.answers.counts()
        if self.link is not None and time.monotonic() >= self._retry:
            try:
                self._talk(self.link, counts)
                self.link_error = ""
            except SeqMixError as error:  # perhaps a task is gone and we were not told, so next time all are fetched again
                self.link_error, self._retry, self._fetched = (
                    str(error),
                    time.monotonic() + _RETRY,
                    False,
                )
        if not self.due(counts):
            return False
        self._asked = False
        self._round(counts)
        return True

    def _round(self, counts: Counts) -> None:
        self.phase, self._failed = (
            "training" if counts.labeled else "ranking",
            (counts.changes, counts.tasks),
        )  # until it has gone well
        self.answers.file.set("error", None)
        try:
            job = self._start()
            while job.exitcode is None:
                job.join(0.2)
                if self._stop.is_set():
                    job.terminate()
                    job.join(10)
                    return
            if job.exitcode == 0:
                self.error, self._failed = "", None
            else:
                self.error = (
                    self.answers.file.get("error")
                    or f"the process that trains ended with {job.exitcode}"
                )
            self.refresh()
        finally:
            self.phase = "waiting"

    def refresh(self) -> Current:
        """The last round with its tagger, loaded if it is new."""
        with self._loading:
            last = self.rounds.last()
            if last is not None and last != self.current.round:
                tagger = self._given if last.kind != "untrained" else None
                if last.kind == "trained":
                    try:
                        tagger = self._load(self.rounds.model(last.number))
                    except SeqMixError as error:
                        self.error, tagger = str(error), None
                self.current, self._retry = Current(last, tagger), 0.0
            return self.current

    def _talk(self, link: Link, counts: Counts) -> None:
        """Bring this side and Label Studio's up to date: all tasks once, each ranking once, and the place of new tasks."""
        project, current, labeling = self.answers.project, self.current, self.answers.labeling
        if project is None or labeling is None:
            return
        if not self._fetched:
            link.fetch(project, self.answers, labeling.control)
            self._fetched = True
        if current.round is None:
            return
        version = self.rounds.version()
        if self.answers.file.get("pushed") != version:
            if self.answers.file.get("pushing") == version:  # broken off: some of them may be there
                link.forget(project, version)
            self.answers.file.set("pushing", version)
            link.push(project, version, self.rounds.wanted())
            link.use(project, version, version.rpartition("-")[0] + "-")
            self.answers.file.set("pushed", version)
            self._topped = 0
        elif counts.quiet >= self._settle and self._topped != (
            seen := self.answers.file.get("seq")
        ):
            new = self.rounds.unranked(_BATCH)
            self._topped = seen if len(new) < _BATCH else 0
            ranks = list(
                zip(self.rank(new, current, labeling), (data for _, data in new), strict=True)
            )
            link.push(project, version, (rank for rank, _ in ranks))
            self.rounds.add(current.round, ranks)

    def rank(
        self, tasks: list[tuple[int, Json]], current: Current, labeling: Labeling
    ) -> list[Rank]:
        """Where tasks stand that the last ranking does not know."""
        sentences = {
            id: sentence
            for id, data in tasks
            if (sentence := sentence_of(id, data, labeling)) is not None and sentence.tokens
        }
        found: dict[int, tuple[list[Json], float]] = {}
        if current.tagger is not None:
            with self._tagging:
                found = dict(
                    zip(
                        sentences,
                        suggestions(current.tagger, sentences.values(), labeling),
                        strict=True,
                    )
                )
        place = (current.round or Round(0, "untrained", 0, 0)).place
        return [
            Rank(
                id,
                place(found[id][1]) if id in found else 0.5 if id in sentences else 1.0,
                found[id][0] if id in found else [],
            )
            for id, _ in tasks
        ]

    def close(self) -> None:
        """Stop, and let go of the file."""
        self.stop()
        self.answers.file.close()
