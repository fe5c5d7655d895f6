"""Keep Label Studio and the project in step, in a thread of its own.

Label Studio's tasks are fetched once, each new order is pushed there, and tasks that come later are
pushed with their place in it. Nothing here makes Label Studio wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from seqmix.data.formats.records import is_deep
from seqmix.errors import SeqMixError
from seqmix.serve.labelstudio.client import LabelStudioClient
from seqmix.serve.labelstudio.external import read_value
from seqmix.serve.labelstudio.labeling import Labeling
from seqmix.serve.labelstudio.mirror import Mirror
from seqmix.serve.labelstudio.predictions import TaskPrediction, TaskPredictions
from seqmix.serve.labelstudio.tasks import annotations_of, data_of, id_of
from seqmix.serve.progress.estimates import Estimates

_BATCH = 1000  # new tasks pushed at a time
_LOOK = 1.0  # seconds between two looks at the store
RETRY = 30.0  # … and before Label Studio's API is tried again


class Sync:
    """The thread of one project; without a client nothing is fetched or pushed."""

    def __init__(
        self, mirror: Mirror, predictions: TaskPredictions, client: LabelStudioClient | None = None
    ) -> None:
        self.mirror, self.predictions, self.client = mirror, predictions, client
        self.error = ""
        self.audit: Any = None  # the newest estimate from the audit
        self._estimates = Estimates(mirror.store)
        self._fetched, self._retry = False, 0.0
        self._pushed, self._sent, self._seen = "", set[int](), -1
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="label studio sync", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(15)

    def notice(self) -> None:
        """Synchronize at once, because something has changed."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._step()
            except Exception as error:  # the thread must outlive whatever goes wrong in it
                self.error = f"{type(error).__name__}: {error}"
            self._wake.wait(_LOOK)
            self._wake.clear()

    def _step(self) -> None:
        self.mirror.realign()
        self.predictions.refresh()
        self.audit = self._estimates.progress().audit
        project, labeling = self.mirror.project_id, self.mirror.labeling
        waits = time.monotonic() < self._retry or project is None or labeling is None
        if self.client is None or waits:
            self.error = "" if self.client is None else self.error
            return
        assert project is not None and labeling is not None
        try:
            self._talk(self.client, project, labeling)
            self.error = ""
        except SeqMixError as error:  # perhaps a task is gone: next time all are fetched again
            self.error, self._retry = str(error), time.monotonic() + RETRY
            self._fetched, self._pushed = False, ""

    def _talk(self, client: LabelStudioClient, project: int, labeling: Labeling) -> None:
        if not self._fetched:
            fetch(client, project, self.mirror, labeling.control)
            self._fetched = True
        changes, current = self.mirror.changes, self.predictions.refresh()
        if current.generation is None:
            return
        if self._pushed != current.version:
            client.forget(project, current.version)  # part of it may be there
            self._sent = set()
            self._push(client, project, current.version, self.predictions.ordered(labeling))
            client.use(project, current.version, current.version.rpartition("-")[0] + "-")
            self._pushed = current.version
        elif self._seen == changes:
            return
        self._seen = changes
        new = [id for id, _ in self.mirror.unanswered() if id not in self._sent]
        self._push(client, project, current.version, self._later(new[:_BATCH], labeling))
        if len(new) > _BATCH:
            self._seen = -1

    def _later(self, ids: list[int], labeling: Labeling) -> Iterator[TaskPrediction]:
        rows = self.mirror.tasks(ids)
        tasks = [(id, read_value(row)) for id, row in rows.items()]
        for (id, _), prediction in zip(tasks, self.predictions.of(tasks, labeling), strict=True):
            yield prediction or TaskPrediction(id, 1.0, [])

    def _push(
        self,
        client: LabelStudioClient,
        project: int,
        version: str,
        predictions: Iterable[TaskPrediction],
    ) -> None:
        def noted() -> Iterator[TaskPrediction]:
            for prediction in predictions:
                self._sent.add(prediction.task)
                yield prediction

        client.push(project, version, noted())


def fetch(client: LabelStudioClient, project: int, mirror: Mirror, control: str) -> int:
    """Take over all tasks and annotations, forget those that are gone; return how many tasks."""
    mirror.touched = set()
    tasks, annotations, totals = set[int](), set[int](), set[int]()
    for total, page in client.pages(project):
        ids = [(id_of(task, "a task"), task) for task in page]
        # one that is nested too deep must not keep all others out
        shallow = [(id, task) for id, task in ids if not is_deep(task)]
        theirs = [item for _, task in shallow for item in annotations_of(task, control)]
        mirror.keep([(id, data_of(task)) for id, task in shallow], theirs)
        tasks |= {id for id, _ in ids}
        annotations |= {annotation.id for annotation in theirs}
        totals.add(total)
    # a task deleted between two pages moves another one past us, which is still there
    if totals == {len(tasks)}:
        mirror.forget_missing(tasks, annotations)
    return len(tasks)
