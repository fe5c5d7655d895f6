"""Label Studio's tasks and annotations as they came, in the store's table of external records."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from seqmix.serve.labelstudio.tasks import Json
from seqmix.serve.store.schema import external

TASK, ANNOTATION = "task", "annotation"
NEW, LABELED, SKIPPED, LEFT_OUT, DELETED = "new", "labeled", "skipped", "left out", "deleted"
_IS = (external.c.kind == bindparam("of_kind"), external.c.id == bindparam("of_id"))
_CHANGE = (
    update(external)
    .where(*_IS)
    .values({name: bindparam(name) for name in ("parent", "sentence_id", "state", "value")})
)
_SET_STATE = update(external).where(*_IS).values(state=bindparam("state"))


@dataclass(frozen=True)
class TaskCounts:
    """How many tasks there are."""

    tasks: int = 0
    labeled: int = 0  # with an annotation that was not skipped
    left_out: int = 0  # of these, whose annotation does not fit the text


def count_tasks(conn: Connection) -> TaskCounts:
    """Return how many tasks there are."""
    states = select(external.c.state, func.count().label("size"))
    by_state = states.where(external.c.kind == TASK).group_by(external.c.state)
    n: dict[str, int] = {row.state: row.size for row in conn.execute(by_state)}
    tasks = sum(n.values()) - n.get(DELETED, 0)
    return TaskCounts(tasks, n.get(LABELED, 0) + n.get(LEFT_OUT, 0), n.get(LEFT_OUT, 0))


def read_records(conn: Connection, kind: str, ids: Collection[int]) -> dict[int, Row[Any]]:
    """Return tasks or annotations by id, deleted ones too."""
    of_kind = select(external).where(external.c.kind == kind)
    return {row.id: row for row in conn.execute(of_kind.where(external.c.id.in_(ids)))}


def write_records(
    conn: Connection, records: Collection[Json], rows: Mapping[int, Row[Any]]
) -> None:
    """Insert new records and change those that are among the `rows`."""
    if new := [record for record in records if record["id"] not in rows]:
        conn.execute(insert(external), new)
    if old := [record for record in records if record["id"] in rows]:
        keys = [{"of_kind": record["kind"], "of_id": record["id"]} for record in old]
        conn.execute(_CHANGE, [record | key for record, key in zip(old, keys, strict=True)])


def set_state(conn: Connection, task: int, state: str) -> None:
    """Set the state of a task."""
    conn.execute(_SET_STATE, {"of_kind": TASK, "of_id": task, "state": state})


def new_record(
    kind: str,
    id: int,
    state: str,
    parent: int | None = None,
    sentence_id: str | None = None,
    value: Json | None = None,
) -> Json:
    """Return a record to write."""
    text = json.dumps(value or {})
    record = {"kind": kind, "id": id, "state": state, "parent": parent}
    return {**record, "sentence_id": sentence_id, "value": text}


def read_value(row: Row[Any]) -> Json:
    """Return what Label Studio sent; nothing where it is nested too deep to be read."""
    try:
        value = json.loads(row.value)
    except RecursionError:
        return {}
    return value if isinstance(value, dict) else {}


def is_deleted(row: Row[Any] | None) -> bool:
    """Return whether Label Studio has deleted it, for good."""
    return row is not None and row.state == DELETED


def is_news(row: Row[Any] | None, value: Json) -> bool:
    """Return whether a task is new or says something else than its record."""
    return row is None or row.value != json.dumps(value)
