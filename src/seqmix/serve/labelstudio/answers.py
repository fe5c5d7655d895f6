"""What Label Studio has said: its labeling configuration, its tasks, and the annotations people made.

An annotation is on the disk before Label Studio hears that it was taken. The access tokens that Label Studio sends along are never stored.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from seqmix.data.formats.records import is_deep
from seqmix.errors import DataError, RunError
from seqmix.serve.labelstudio.database import File
from seqmix.serve.labelstudio.labeling import Labeling, parse_labeling
from seqmix.serve.labelstudio.tasks import Annotation, Json

# subtle: of several annotations one counts: the ground truth, else the last that was not cancelled, as in exported files
ANSWER = """(SELECT result FROM annotations a WHERE a.task = tasks.id AND NOT cancelled
    ORDER BY truth DESC, updated DESC, a.id DESC LIMIT 1)"""
_PAGE = 500


@dataclass(frozen=True)
class Counts:
    """How much there is."""

    tasks: int
    labeled: int
    changes: int  # how often a label came, changed or went, ever
    quiet: float  # seconds since anything new came


class Answers:
    """Tasks and annotations of one project."""

    def __init__(self, file: File) -> None:
        self.file = file
        self._touched = -1e9

    def bind(self, project: str) -> None:
        """Make this folder that project's; another's is refused. A project is its id and the second of its creation, as 7.1700000000."""
        id, _, created = project.partition(".")
        if not (id.isdecimal() and created.isdecimal() and len(project) <= 50):
            raise DataError(
                'expected "project" to name a Label Studio project, as in 1.1700000000',
                text=project,
            )
        if self.file.get("project") != project:
            with self.file.writing():
                known = self.file.get("project")
                if known is not None:
                    raise RunError(
                        f"this backend serves the Label Studio project {known.partition('.')[0]} (created at {known.partition('.')[2]}), "
                        f"not {project}; start another with its own --folder and --port"
                    )
                self.file.set("project", project)

    @property
    def project(self) -> int | None:
        """The id of the project; None before Label Studio has said."""
        known = self.file.get("project")
        return None if known is None else int(known.partition(".")[0])

    def configure(self, xml: str) -> bool:
        """Take the project's labeling configuration; whether it asks for something else than the one before.

        One that has no spans of text to label is refused. What was found under another one is forgotten.
        """
        labeling, before = parse_labeling(xml), self.labeling
        if labeling == before:
            return False
        with self.file.writing():
            self.file.set("config", xml)
            self.file.rows("DELETE FROM ranks")
        return before is not None

    @property
    def labeling(self) -> Labeling | None:
        """What is labeled; None before Label Studio has said."""
        xml = self.file.get("config")
        return None if xml is None else parse_labeling(xml)

    def keep(
        self, tasks: Iterable[tuple[int, Json]], annotations: Iterable[Annotation] = ()
    ) -> None:
        """Add tasks and annotations or bring them up to date, all or none.

        An older version of an annotation changes nothing, and what was deleted stays so: Label Studio never gives an id again, but what
        it sent before the deletion may arrive after it.
        """
        with self.file.writing():
            seq = self.moment()
            for id, data in tasks:
                if self._is_deleted("tasks", id):
                    continue
                if not self.file.rows(
                    "SELECT 1 FROM tasks WHERE id = ? AND digest = ?", id, digest(data)
                ):
                    self._touched = time.monotonic()
                self.file.rows(
                    "INSERT INTO tasks VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (id) DO UPDATE SET data = excluded.data, digest = excluded.digest, seq = excluded.seq",
                    *(id, json.dumps(data), digest(data), seq),
                )
            for own in annotations:
                if not (
                    self._is_deleted("annotations", own.id) or self._is_deleted("tasks", own.task)
                ):
                    self._annotate(own, seq)

    def _annotate(self, own: Annotation, seq: int) -> None:
        row = (own.task, json.dumps(own.result), int(own.cancelled), int(own.truth))
        known = self.file.rows(
            "SELECT task, result, cancelled, truth, updated FROM annotations WHERE id = ?", own.id
        )
        if known and known[0][4] > own.updated:
            return
        self.file.rows(
            "INSERT OR REPLACE INTO annotations VALUES (?, ?, ?, ?, ?, ?, ?)",
            own.id,
            *row,
            own.updated,
            seq,
        )
        if (known and known[0][:4] != row) or (not known and not own.cancelled):
            self._changed(1)

    def _is_deleted(self, table: str, id: int) -> bool:
        return bool(self.file.rows("SELECT 1 FROM deleted WHERE kind = ? AND id = ?", table, id))

    def delete(self, table: str, ids: Sequence[int], forever: bool = True) -> None:
        """Forget annotations, or tasks with all that belongs to them."""
        column = {"annotations": "id", "tasks": "task"}[table]
        with self.file.writing():
            for id in ids:
                if forever:
                    self.file.rows("INSERT OR IGNORE INTO deleted VALUES (?, ?)", table, id)
                self._changed(
                    int(
                        self.file.rows(
                            f"SELECT count(*) FROM annotations WHERE {column} = ? AND NOT cancelled",
                            id,
                        )[0][0]
                    )
                )
                self.file.rows(f"DELETE FROM {table} WHERE id = ?", id)

    def moment(self) -> int:
        """A point in time to compare with: what comes later has a higher number."""
        return self.file.add("seq", 1)

    def forget_missing(self, tasks: Iterable[int], annotations: Iterable[int], before: int) -> None:
        """Forget what Label Studio no longer has, unless it came after the moment at which Label Studio was asked."""
        for table, present in (("tasks", set(tasks)), ("annotations", set(annotations))):
            known = [
                row[0] for row in self.file.rows(f"SELECT id FROM {table} WHERE seq < ?", before)
            ]
            self.delete(table, [id for id in known if id not in present], forever=False)

    def tasks(self, labeled: bool) -> Iterator[tuple[int, Json, list[Json] | None]]:
        """Tasks with the answer that counts, or those without one; page by page, so that nobody waits for the end."""
        wanted = f"SELECT id, data, {ANSWER} AS answer FROM tasks WHERE id > ? AND answer IS {'NOT' if labeled else ''} NULL"
        last = -1
        while page := self.file.rows(f"{wanted} ORDER BY id LIMIT {_PAGE}", last):
            for id, data, answer in page:
                last = id
                if (read := read_data(data)) is not None:
                    yield id, read, None if answer is None else read_result(answer)

    def counts(self) -> Counts:
        """How much there is."""
        tasks = self.file.rows("SELECT count(*) FROM tasks")[0][0]
        labeled = self.file.rows(
            "SELECT count(DISTINCT task) FROM annotations WHERE NOT cancelled"
        )[0][0]
        return Counts(tasks, labeled, int(self.file.get("changes") or 0), self.quiet)

    @property
    def quiet(self) -> float:
        """Seconds since anything new came."""
        return time.monotonic() - self._touched

    def _changed(self, n: int) -> None:
        self._touched = time.monotonic()
        if n:
            self.file.add("changes", n)


def read_data(text: str) -> Json | None:
    """The data of a stored task; None where it is nested too deep to be worked with, as earlier versions stored it."""
    data: Json | None = _read(text)
    return data


def read_result(text: str) -> list[Json]:
    """The result of a stored annotation; one that is nested too deep says nothing."""
    result: list[Json] | None = _read(text)
    return result if result is not None else []


def _read(text: str) -> Any:
    try:
        value = json.loads(text)
    except RecursionError:
        return None
    return None if is_deep(value) else value


def digest(data: Json) -> str:
    """Tells whether a task's data changed."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:32]
