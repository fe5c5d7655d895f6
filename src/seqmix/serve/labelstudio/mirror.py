"""What Label Studio holds, in a project: its tasks as sentences, its annotations as answers.

Tasks and annotations are kept as they came, in the store's table of external records; what counts
of them is saved as answers of an annotator named label-studio, through the same events as
everybody's. It is on the disk when a call returns. Access tokens that come along are never stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, RunError
from seqmix.serve.labelstudio.annotations import ANNOTATOR, save_annotations
from seqmix.serve.labelstudio.external import (
    ANNOTATION,
    DELETED,
    LABELED,
    NEW,
    SKIPPED,
    TASK,
    TaskCounts,
    count_tasks,
    is_deleted,
    is_news,
    new_record,
    read_records,
    read_value,
    write_records,
)
from seqmix.serve.labelstudio.labeling import Labeling, parse_labeling
from seqmix.serve.labelstudio.tasks import Annotation, Json, sentence_of
from seqmix.serve.project import Project
from seqmix.serve.settings import read_settings
from seqmix.serve.store.annotators import add_annotator, find_annotator, revoke_token
from seqmix.serve.store.records import digest
from seqmix.serve.store.schema import external, sentences
from seqmix.serve.store.sentences import add_sentences, paged, restore_sentences
from seqmix.serve.tags.changes import Wish
from seqmix.serve.tags.in_settings import change_project_tags

NOT_YET = "expected Label Studio to call /setup first, or to send the labeling configuration along"
_NOTE = "label_studio"
_PAGE = 200  # tasks in one transaction: somebody may be waiting to save


class Mirror:
    """The tasks and annotations of one Label Studio project."""

    def __init__(self, project: Project) -> None:
        self.project, self.store = project, project.store
        self.changes = 0  # tasks that came or changed since the start
        self.touched: set[tuple[str, int]] = set()  # records that came since the last fetch began
        self._labeling: tuple[str, Labeling] | None = None
        with self.store.writing():
            annotator = find_annotator(self.store, ANNOTATOR)
            if annotator is None:
                add_annotator(self.store, ANNOTATOR)
                annotator = find_annotator(self.store, ANNOTATOR)
                assert annotator is not None
                revoke_token(self.store, annotator.id)  # nobody logs in as Label Studio
        self.annotator_id = annotator.id

    # which project, and what is labeled

    def noted(self, key: str) -> Any:
        """Return one small thing that is remembered; None without it."""
        return (self.store.read_note(_NOTE) or {}).get(key)

    def note(self, **values: Any) -> None:
        """Remember small things."""
        with self.store.writing():
            self.store.write_note(_NOTE, {**(self.store.read_note(_NOTE) or {}), **values})

    def bind(self, project: str) -> None:
        """Make this folder that Label Studio project's; another's is refused."""
        with self.store.writing():
            bound = self.noted("project")
            if bound is None:
                self.note(project=project)
            elif bound != project:
                id, _, created = bound.partition(".")
                raise RunError(
                    f"this backend serves the Label Studio project {id} (created at {created}), "
                    f"not {project}; start another with its own --folder and --port"
                )

    @property
    def project_id(self) -> int | None:
        """The id of the bound project."""
        bound = self.noted("project")
        return None if bound is None else int(bound.partition(".")[0])

    @property
    def labeling(self) -> Labeling | None:
        """What is labeled; None before Label Studio has said."""
        xml = self.noted("config")
        if xml is None:
            return None
        if self._labeling is None or self._labeling[0] != xml:
            self._labeling = xml, parse_labeling(xml)
        return self._labeling[1]

    def known_labeling(self) -> Labeling:
        """Return what is labeled, once Label Studio has said."""
        labeling = self.labeling
        if labeling is None:
            raise DataError(NOT_YET)
        return labeling

    def configure(self, xml: str) -> bool:
        """Take the labeling configuration; return whether another one was there before.

        The first one must have the project's tags as labels; a later one may add some.
        """
        labeling, before = parse_labeling(xml), self.labeling
        if labeling == before:
            return False
        tags, known = tuple(labeling.tags.values()), self.store.read_tags()
        if before is None and set(tags) != set(known):
            raise DataError(
                f"the labels must be the tags of the project in {self.project.folder}: "
                f"{', '.join(known)}; got {', '.join(tags)}"
            )
        if new := tuple(tag for tag in tags if tag not in known):
            for tag in new:
                change_project_tags(self.project.folder, self.store, Wish("add", tag))
            settings = read_settings(self.project.folder)
            self.project = replace(self.project, settings=settings)
        self.note(config=xml, outdated=before is not None)
        return before is not None

    # what comes from Label Studio

    def keep(
        self, tasks: Iterable[tuple[int, Json]], annotations: Iterable[Annotation] = ()
    ) -> None:
        """Add tasks and their annotations or bring them up to date.

        An older version of an annotation changes nothing, and what was deleted stays deleted:
        Label Studio never uses an id again, but what it sent earlier may arrive later.
        """
        labeling, by_task = self.known_labeling(), defaultdict[int, list[Annotation]](list)
        for annotation in annotations:
            by_task[annotation.task].append(annotation)
        for page in paged(dict(tasks).items(), _PAGE):
            with self.store.writing() as conn:
                rows = read_records(conn, TASK, [id for id, _ in page])
                page = [(id, data) for id, data in page if not is_deleted(rows.get(id))]
                outdated = self._put_tasks(conn, page, rows, labeling)
                changed = [annotation for id, _ in page for annotation in by_task[id]]
                touched = self._put_annotations(conn, changed)
                touched |= {id for id, data in page if is_news(rows.get(id), data)}
                self._save(labeling, touched, outdated)

    def realign(self) -> bool:
        """Read all tasks again if the labeling configuration has changed; return whether it had."""
        if not self.noted("outdated"):
            return False
        labeling, last = self.known_labeling(), -1
        live = select(external).where(external.c.kind == TASK, external.c.state != DELETED)
        while True:
            with self.store.writing() as conn:
                page = live.where(external.c.id > last).order_by(external.c.id).limit(_PAGE)
                rows = {row.id: row for row in conn.execute(page)}
                if not rows:
                    self.note(outdated=False)
                    return True
                tasks = [(row.id, read_value(row)) for row in rows.values()]
                outdated = self._put_tasks(conn, tasks, rows, labeling, again=True)
                self._save(labeling, rows, outdated)
            last = max(rows)

    def delete(self, kind: str, ids: Sequence[int], forever: bool = True) -> None:
        """Forget annotations, or tasks with all that belongs to them."""
        for page in paged(ids, _PAGE):
            with self.store.writing() as conn:
                rows = read_records(conn, kind, page)
                live = {id: row for id, row in rows.items() if not is_deleted(row)}
                if kind == TASK:
                    annotations = external.c.kind == ANNOTATION
                    conn.execute(delete(external).where(annotations, external.c.parent.in_(live)))
                is_gone = external.c.id.in_(page if forever else live)
                conn.execute(delete(external).where(external.c.kind == kind, is_gone))
                if forever:
                    deleted = [new_record(kind, id, DELETED) for id in {*page}]
                    conn.execute(insert(external), deleted)
                if self.labeling is not None:
                    tasks = {row.parent for row in live.values()} - {None}
                    lost = {row.sentence_id for row in live.values()} - {None}
                    self._save(self.labeling, tasks, lost)

    def forget_missing(self, tasks: Collection[int], annotations: Collection[int]) -> None:
        """Forget what Label Studio no longer has, unless it came since the fetch began."""
        for kind, present in ((TASK, tasks), (ANNOTATION, annotations)):
            live = select(external.c.id).where(external.c.kind == kind, external.c.state != DELETED)
            with self.store.reading() as conn:
                ids = list(conn.execute(live).scalars())
            there = {*present, *(id for touched, id in [*self.touched] if touched == kind)}
            self.delete(kind, [id for id in ids if id not in there], forever=False)

    # what there is

    def counts(self) -> TaskCounts:
        """Return how many tasks there are."""
        with self.store.reading() as conn:
            return count_tasks(conn)

    def unanswered(self) -> list[tuple[int, str | None]]:
        """Return the tasks without an answer in Label Studio, each with the id of its sentence."""
        waiting = external.c.state.in_((NEW, SKIPPED))
        tasks = select(external.c.id, external.c.sentence_id).where(external.c.kind == TASK)
        with self.store.reading() as conn:
            return [(id, key) for id, key in conn.execute(tasks.where(waiting).order_by("id"))]

    def tasks(self, ids: Collection[int]) -> dict[int, Row[Any]]:
        """Return the rows of some tasks."""
        with self.store.reading() as conn:
            rows = read_records(conn, TASK, ids)
        return {id: row for id, row in rows.items() if not is_deleted(row)}

    # how it is written down

    def _put_tasks(
        self,
        conn: Connection,
        tasks: Sequence[tuple[int, Json]],
        rows: dict[int, Row[Any]],
        labeling: Labeling,
        again: bool = False,
    ) -> set[str]:
        """Write down new and changed tasks; return the sentences they no longer belong to."""
        changed = [(id, data) for id, data in tasks if again or is_news(rows.get(id), data)]
        texts = {id: sentence_of(id, data, labeling) for id, data in changed}
        keys = self._sentence_ids([s for s in texts.values() if s is not None and s.tokens])
        left, records = set[str](), []
        for id, data in changed:
            sentence, row = texts[id], rows.get(id)
            key = None if sentence is None else keys.get(digest(sentence.tokens))
            if row is not None and row.sentence_id not in (None, key):
                left.add(row.sentence_id)
            state = NEW if row is None else row.state
            records.append(new_record(TASK, id, state, None, key, data))
        self._write(conn, records, rows)
        self.changes += len(records)
        return left

    def _sentence_ids(self, texts: Sequence[Sentence]) -> dict[str, str]:
        """Return the ids of sentences by the digest of their tokens; new ones are added."""
        by_key = {digest(sentence.tokens): sentence for sentence in texts}
        stored = select(sentences.c.digest, sentences.c.id).where(sentences.c.digest.in_(by_key))
        with self.store.writing() as conn:
            ids = {row.digest: row.id for row in conn.execute(stored)}
            if new := [
                replace(sentence, id=f"{ANNOTATOR}:{sentence.id}:{key[:8]}")
                for key, sentence in by_key.items()
                if key not in ids
            ]:
                add_sentences(self.store, new, random_seed=self.project.settings.seed)
            if ids:
                restore_sentences(self.store, list(ids.values()))
        return ids | {digest(sentence.tokens): sentence.id for sentence in new}

    def _put_annotations(self, conn: Connection, annotations: Sequence[Annotation]) -> set[int]:
        """Write down new and changed annotations; return their tasks."""
        rows = read_records(conn, ANNOTATION, [annotation.id for annotation in annotations])
        records: dict[int, Json] = {}
        for annotation in annotations:
            row = rows.get(annotation.id)
            is_older = row is not None and read_value(row).get("updated", "") > annotation.updated
            if not is_deleted(row) and not is_older:
                state = SKIPPED if annotation.cancelled else LABELED
                records[annotation.id] = new_record(
                    ANNOTATION, annotation.id, state, annotation.task, None, asdict(annotation)
                )
        self._write(conn, list(records.values()), rows)
        moved = {rows[id].parent for id in records if id in rows}
        return {record["parent"] for record in records.values()} | moved

    def _write(self, conn: Connection, records: list[Json], rows: dict[int, Row[Any]]) -> None:
        self.touched |= {(record["kind"], record["id"]) for record in records}
        write_records(conn, records, rows)

    def _save(self, labeling: Labeling, tasks: Collection[int], sentence_ids: set[str]) -> None:
        save_annotations(self.store, self.annotator_id, labeling, tasks, sentence_ids)
