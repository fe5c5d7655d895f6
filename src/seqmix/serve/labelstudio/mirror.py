"""What Label Studio holds, in a project: its tasks as sentences, its annotations as answers.

Tasks and annotations are kept as they came, in the store's table of external records; what counts
of them is saved as answers of an annotator named label-studio, through the same events as
everybody's. It is on the disk when a call returns. Access tokens that come along are never stored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from seqmix.data.scheme import spans
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, RunError
from seqmix.serve.labelstudio.labeling import Labeling, parse_labeling
from seqmix.serve.labelstudio.tasks import Annotation, Json, sentence_of
from seqmix.serve.project import Project
from seqmix.serve.settings import change_settings
from seqmix.serve.store.annotators import add_annotator, find_annotator, revoke_token
from seqmix.serve.store.answers import answer_version, save_answer, undo_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.queue import assign, give_back
from seqmix.serve.store.records import Mark, digest
from seqmix.serve.store.schema import current, external, sentences
from seqmix.serve.store.sentences import (
    add_sentences,
    paged,
    restore_sentences,
    retire_sentences,
)

ANNOTATOR = "label-studio"
NEW, LABELED, SKIPPED, LEFT_OUT, DELETED = "new", "labeled", "skipped", "left out", "deleted"
_TASK, _ANNOTATION = "task", "annotation"
_NOTE = "label_studio"
_PAGE = 200  # tasks in one transaction: somebody may be waiting to save
_IS = (external.c.kind == bindparam("of_kind"), external.c.id == bindparam("of_id"))
_CHANGE = (
    update(external)
    .where(*_IS)
    .values({name: bindparam(name) for name in ("parent", "sentence_id", "state", "value")})
)
_SET_STATE = update(external).where(*_IS).values(state=bindparam("state"))


@dataclass(frozen=True)
class Counts:
    """How many tasks there are."""

    tasks: int = 0
    labeled: int = 0  # with an annotation that was not skipped
    left_out: int = 0  # of these, whose annotation does not fit the text


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

    def configure(self, xml: str) -> bool:
        """Take the labeling configuration; return whether another one was there before.

        The first one must have the labels of the project; new labels of a later one are added to it.
        """
        labeling, before = parse_labeling(xml), self.labeling
        if labeling == before:
            return False
        tags, settings = tuple(labeling.tags.values()), self.project.settings
        if before is None and set(tags) != set(settings.tags):
            raise DataError(
                f"the labels must be the tags of the project in {self.project.folder}: "
                f"{', '.join(settings.tags)}; got {', '.join(tags)}"
            )
        if new := tuple(tag for tag in tags if tag not in settings.tags):
            settings = change_settings(self.project.folder, tags=(*settings.tags, *new))
            self.store.set_tags(settings.tags)
            self.project = replace(self.project, settings=settings)
        self.note(config=xml, outdated=before is not None)
        return before is not None

    # what comes from Label Studio

    def keep(
        self, tasks: Iterable[tuple[int, Json]], annotations: Iterable[Annotation] = ()
    ) -> None:
        """Add tasks and their annotations or bring them up to date.

        An older version of an annotation changes nothing, and what was deleted stays so: Label Studio
        never gives an id again, but what it sent before the deletion may arrive after it.
        """
        labeling, by_task = self._known_labeling(), defaultdict[int, list[Annotation]](list)
        for annotation in annotations:
            by_task[annotation.task].append(annotation)
        for page in paged(dict(tasks).items(), _PAGE):
            with self.store.writing() as conn:
                rows = _rows(conn, _TASK, [id for id, _ in page])
                page = [(id, data) for id, data in page if not _is_deleted(rows.get(id))]
                outdated = self._put_tasks(conn, page, rows, labeling)
                changed = [annotation for id, _ in page for annotation in by_task[id]]
                touched = self._put_annotations(conn, changed)
                touched |= {id for id, data in page if _is_news(rows.get(id), data)}
                self._settle(conn, touched, outdated, labeling)

    def realign(self) -> bool:
        """Read everything again after a change of the labeling configuration; return whether it was due."""
        if not self.noted("outdated"):
            return False
        labeling, last = self._known_labeling(), -1
        live = select(external).where(external.c.kind == _TASK, external.c.state != DELETED)
        while True:
            with self.store.writing() as conn:
                page = live.where(external.c.id > last).order_by(external.c.id).limit(_PAGE)
                rows = {row.id: row for row in conn.execute(page)}
                if not rows:
                    self.note(outdated=False)
                    return True
                tasks = [(row.id, read_data(row)) for row in rows.values()]
                outdated = self._put_tasks(conn, tasks, rows, labeling, again=True)
                self._settle(conn, rows, outdated, labeling)
            last = max(rows)

    def delete(self, kind: str, ids: Sequence[int], forever: bool = True) -> None:
        """Forget annotations, or tasks with all that belongs to them."""
        for page in paged(ids, _PAGE):
            with self.store.writing() as conn:
                rows = _rows(conn, kind, page)
                live = {id: row for id, row in rows.items() if not _is_deleted(row)}
                if kind == _TASK:
                    annotations = external.c.kind == _ANNOTATION
                    conn.execute(delete(external).where(annotations, external.c.parent.in_(live)))
                gone = page if forever else live
                conn.execute(
                    delete(external).where(external.c.kind == kind, external.c.id.in_(gone))
                )
                if forever:
                    conn.execute(insert(external), [_record(kind, id, DELETED) for id in {*page}])
                if self.labeling is not None:
                    tasks = {row.parent for row in live.values()} - {None}
                    lost = {row.sentence_id for row in live.values()} - {None}
                    self._settle(conn, tasks, lost, self.labeling)

    def forget_missing(self, tasks: Collection[int], annotations: Collection[int]) -> None:
        """Forget what Label Studio no longer has, unless it came since the fetch began."""
        for kind, present in ((_TASK, tasks), (_ANNOTATION, annotations)):
            live = select(external.c.id).where(external.c.kind == kind, external.c.state != DELETED)
            with self.store.reading() as conn:
                ids = list(conn.execute(live).scalars())
            there = {*present, *(id for touched, id in [*self.touched] if touched == kind)}
            self.delete(kind, [id for id in ids if id not in there], forever=False)

    # what there is

    def counts(self) -> Counts:
        """Return how many tasks there are."""
        by_state = select(external.c.state, func.count().label("size")).where(
            external.c.kind == _TASK
        )
        with self.store.reading() as conn:
            rows = conn.execute(by_state.group_by(external.c.state)).all()
        n: dict[str, int] = {row.state: row.size for row in rows}
        tasks = sum(n.values()) - n.get(DELETED, 0)
        return Counts(tasks, n.get(LABELED, 0) + n.get(LEFT_OUT, 0), n.get(LEFT_OUT, 0))

    def unanswered(self) -> list[tuple[int, str | None]]:
        """Return the tasks without an answer in Label Studio, each with the id of its sentence."""
        waiting = external.c.state.in_((NEW, SKIPPED))
        tasks = select(external.c.id, external.c.sentence_id).where(external.c.kind == _TASK)
        with self.store.reading() as conn:
            return [(id, key) for id, key in conn.execute(tasks.where(waiting).order_by("id"))]

    def tasks(self, ids: Collection[int]) -> dict[int, Row[Any]]:
        """Return the rows of some tasks."""
        with self.store.reading() as conn:
            return {id: row for id, row in _rows(conn, _TASK, ids).items() if row.state != DELETED}

    # how it is written down

    def _known_labeling(self) -> Labeling:
        if self.labeling is None:
            raise DataError(
                "expected Label Studio to call /setup first, "
                "or to send the labeling configuration along"
            )
        return self.labeling

    def _put_tasks(
        self,
        conn: Connection,
        tasks: Sequence[tuple[int, Json]],
        rows: dict[int, Row[Any]],
        labeling: Labeling,
        again: bool = False,
    ) -> set[str]:
        """Write down new and changed tasks; return the sentences they no longer belong to."""
        changed = [(id, data) for id, data in tasks if again or _is_news(rows.get(id), data)]
        texts = {id: sentence_of(id, data, labeling) for id, data in changed}
        keys = self._sentence_ids([s for s in texts.values() if s is not None and s.tokens])
        left, records = set[str](), []
        for id, data in changed:
            sentence, row = texts[id], rows.get(id)
            key = None if sentence is None else keys.get(digest(sentence.tokens))
            if row is not None and row.sentence_id not in (None, key):
                left.add(row.sentence_id)
            state = NEW if row is None else row.state
            records.append(_record(_TASK, id, state, None, key, data))
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
        rows = _rows(conn, _ANNOTATION, [annotation.id for annotation in annotations])
        records: dict[int, Json] = {}
        for annotation in annotations:
            row = rows.get(annotation.id)
            stale = row is not None and (
                row.state == DELETED or json.loads(row.value)["updated"] > annotation.updated
            )
            if not stale:
                state = SKIPPED if annotation.cancelled else LABELED
                records[annotation.id] = _record(
                    _ANNOTATION, annotation.id, state, annotation.task, None, asdict(annotation)
                )
        self._write(conn, list(records.values()), rows)
        moved = {rows[id].parent for id in records if id in rows}
        return {record["parent"] for record in records.values()} | moved

    def _write(self, conn: Connection, records: list[Json], rows: dict[int, Row[Any]]) -> None:
        self.touched |= {(record["kind"], record["id"]) for record in records}
        if new := [record for record in records if record["id"] not in rows]:
            conn.execute(insert(external), new)
        if known := [record for record in records if record["id"] in rows]:
            conn.execute(
                _CHANGE,
                [{**record, "of_kind": record["kind"], "of_id": record["id"]} for record in known],
            )

    def _settle(
        self, conn: Connection, tasks: Iterable[int], others: Iterable[str], labeling: Labeling
    ) -> None:
        """Save what counts now of the annotations of some tasks and sentences."""
        task_ids = [*tasks]
        rows = _rows(conn, _TASK, task_ids)
        keys = {*others, *(row.sentence_id for row in rows.values() if row.sentence_id is not None)}
        live = (external.c.kind == _TASK) & (external.c.state != DELETED)
        twins = conn.execute(select(external).where(live, external.c.sentence_id.in_(keys)))
        rows |= {row.id: row for row in twins}
        annotations = defaultdict[int, list[Json]](list)
        is_theirs = (external.c.kind == _ANNOTATION) & external.c.parent.in_(rows)
        for row in conn.execute(select(external).where(is_theirs, external.c.state != DELETED)):
            annotations[row.parent].append(json.loads(row.value))
        answers: dict[str, list[tuple[str, Any, tuple[Mark, ...]]]] = {key: [] for key in keys}
        for row in rows.values():
            if row.state == DELETED:
                continue
            state, rank, marks = _outcome(row, annotations[row.id], labeling)
            if state != row.state:
                conn.execute(_SET_STATE, {"of_kind": _TASK, "of_id": row.id, "state": state})
            if row.sentence_id is not None:
                answers[row.sentence_id].append((state, rank, marks))
        for key, outcomes in answers.items():
            self._answer(conn, key, outcomes)
            if not outcomes:
                self._retire(conn, key)

    def _answer(self, conn: Connection, sentence_id: str, outcomes: Sequence[Any]) -> None:
        """Bring what label-studio answers to a sentence up to date."""
        me, store = self.annotator_id, self.store
        labels = [(rank, marks) for state, rank, marks in outcomes if state == LABELED]
        kind = "label" if labels else "skip" if any(o[0] == SKIPPED for o in outcomes) else None
        marks = max(labels)[1] if labels else ()
        said = next((a for a in current_answers(store, sentence_id, True) if _is_by(a, me)), None)
        if kind is not None:
            if said is None or (said.kind, said.spans) != (kind, marks):
                assign(conn, sentence_id, me)
                version = answer_version(store, sentence_id, me)
                save_answer(store, sentence_id, me, kind, marks, version=version)
            return
        while said is not None:
            undo_answer(store, me, said.seq)
            said = next(
                (a for a in current_answers(store, sentence_id, True) if _is_by(a, me)), None
            )
            give_back(conn, sentence_id, me)

    def _retire(self, conn: Connection, sentence_id: str) -> None:
        """Take a sentence of ours that no task has any more out of the project, unless it has an answer."""
        answered = select(current.c.seq).where(current.c.sentence_id == sentence_id)
        if sentence_id.startswith(f"{ANNOTATOR}:") and conn.execute(answered).first() is None:
            retire_sentences(self.store, [sentence_id])


def read_data(row: Row[Any]) -> Json:
    """Return the data of a stored task; nothing where it is nested too deep to be read."""
    try:
        data = json.loads(row.value)
    except RecursionError:
        return {}
    return data if isinstance(data, dict) else {}


def _outcome(
    row: Row[Any], annotations: Sequence[Json], labeling: Labeling
) -> tuple[str, Any, tuple[Mark, ...]]:
    """Return what a task is by its annotations, and how the one that counts ranks and marks.

    The ground truth counts, else the last that was not cancelled, as in exported files.
    """
    valid = [a for a in annotations if not a["cancelled"]]
    if not valid:
        return SKIPPED if annotations else NEW, (), ()
    best = max(valid, key=lambda a: (a["truth"], a["updated"], a["id"]))
    rank = (best["truth"], best["updated"], best["id"])
    try:
        sentence = sentence_of(row.id, read_data(row), labeling, best["result"])
    except DataError:  # the text was changed under its labels
        sentence = None
    if sentence is None or not sentence.tokens:
        return LEFT_OUT, rank, ()
    found = spans([str(tag) for tag in sentence.tags])
    return LABELED, rank, tuple(Mark(span.start, span.end, span.type) for span in found)


def _rows(conn: Connection, kind: str, ids: Collection[int]) -> dict[int, Row[Any]]:
    wanted = select(external).where(external.c.kind == kind, external.c.id.in_(ids))
    return {row.id: row for row in conn.execute(wanted)}


def _record(
    kind: str,
    id: int,
    state: str,
    parent: int | None = None,
    sentence_id: str | None = None,
    value: Json | None = None,
) -> Json:
    return {
        "kind": kind,
        "id": id,
        "state": state,
        "parent": parent,
        "sentence_id": sentence_id,
        "value": json.dumps(value or {}),
    }


def _is_deleted(row: Row[Any] | None) -> bool:
    return row is not None and row.state == DELETED


def _is_news(row: Row[Any] | None, data: Json) -> bool:
    return row is None or row.value != json.dumps(data)


def _is_by(answer: Any, annotator_id: int) -> bool:
    return bool(answer.annotator_id == annotator_id and answer.kind != "adjudicate")
