"""What a tag of an earlier answer means now.

Events keep the tags they were given; whoever reads one maps its tags by the changes since. A
renamed or merged tag has one meaning, a retired one means nothing, a split one has several: such a
span is open until a person has looked at it.

    rename PER HUMAN, split HUMAN HERO CROWD:  PER -> HERO or CROWD

An undone change counts for nothing in what is older. What was answered between the change and its
undo is mapped back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from seqmix.data.sentence import Row
from seqmix.data.spans import OUTSIDE, spans
from seqmix.serve.store.records import Mark, Ranges, loads
from seqmix.serve.store.schema import tag_changes

NOTHING = ""  # the meaning of a retired tag
_NEWEST = select(func.coalesce(func.max(tag_changes.c.id), 0))


@dataclass(frozen=True)
class TagChange:
    """A change of the tags."""

    id: int
    kind: str  # add, rename, merge, split, recolor, retire or undo
    tag: str
    details: Mapping[str, Any]  # "tags" before it, and what it changed them into
    annotator_id: int | None  # none: by command
    at: float
    after: int  # the last event before it

    @property
    def into(self) -> tuple[str, ...]:
        """The tags that the tag became."""
        return tuple(self.details.get("into", ()))

    @property
    def undoes(self) -> int | None:
        """The id of the change that an undo cancels."""
        return self.details.get("undoes")

    def forth(self) -> Mapping[str, tuple[str, ...]]:
        """Return what the change makes of earlier tags; of others, nothing new."""
        if self.kind in ("rename", "merge", "split"):
            return {self.tag: self.into}
        return {self.tag: (NOTHING,)} if self.kind == "retire" else {}

    def back(self) -> Mapping[str, tuple[str, ...]]:
        """Return what the undo of the change makes of tags that were given in between."""
        before = set(self.details.get("tags", ())) - {self.tag}
        if self.kind == "add":
            return {self.tag: (NOTHING,)}
        return {tag: (tag, self.tag) if tag in before else (self.tag,) for tag in self.into}


class OpenMark(NamedTuple):
    """A span whose tag was split: a person has to choose what it is now."""

    start: int
    end: int
    tag: str  # as it was given
    choices: tuple[str, ...]


@dataclass(frozen=True)
class TagHistory:
    """All changes of a project's tags; a place is the number of changes before something."""

    changes: tuple[TagChange, ...] = ()
    _known: dict[tuple[int, str], tuple[str, ...]] = field(default_factory=dict, compare=False)
    _unasked: dict[int, frozenset[str]] = field(default_factory=dict, compare=False)

    @property
    def newest(self) -> int:
        """The id of the last change; 0 before there is one."""
        return self.changes[-1].id if self.changes else 0

    @property
    def undone(self) -> Mapping[int, TagChange]:
        """The undo of each change that has one, by the id of that change."""
        return {c.undoes: c for c in self.changes if c.undoes is not None}

    def at_event(self, seq: int) -> int:
        """Return the place of an event."""
        return bisect_left(self.changes, seq, key=lambda change: change.after)

    def at_change(self, id: int) -> int:
        """Return the place of something that knew the changes up to this one."""
        return bisect_right(self.changes, id, key=lambda change: change.id)

    def meanings(self, tag: str, place: int) -> tuple[str, ...]:
        """Return what a tag that was given at a place may be now; NOTHING is one of them."""
        if (place, tag) not in self._known:
            meant: tuple[str, ...] = (tag,)
            for step in self._steps(place):
                meant = tuple(dict.fromkeys(now for tag in meant for now in step.get(tag, (tag,))))
            self._known[place, tag] = meant
        return self._known[place, tag]

    def _steps(self, place: int) -> list[Mapping[str, tuple[str, ...]]]:
        """Return what each change from a place on makes of tags."""
        by_id = {change.id: at for at, change in enumerate(self.changes)}
        undone, steps = self.undone, []
        for change in self.changes[place:]:
            if change.undoes is None:
                steps += [change.forth()] if change.id not in undone else []
            elif by_id[change.undoes] < place:
                steps.append(self.changes[by_id[change.undoes]].back())
        return steps

    def marks(
        self, earlier: Iterable[Mark], place: int
    ) -> tuple[tuple[Mark, ...], tuple[OpenMark, ...]]:
        """Return marks with their tags of now, and those that are open."""
        if place >= len(self.changes):
            return tuple(earlier), ()
        marks, opened = [], []
        for mark in earlier:
            meant = self.meanings(mark.tag, place)
            if len(meant) > 1:
                opened.append(OpenMark(*mark, meant))
            elif meant[0] != NOTHING:
                marks.append(Mark(mark.start, mark.end, meant[0]))
        return tuple(marks), tuple(opened)

    def rows(self, earlier: Sequence[Row], place: int) -> Sequence[Row]:
        """Return BIO tags, certain or in shares, as of now; open ones are missing."""
        if place >= len(self.changes):
            return earlier
        return [self._row(row, place) for row in earlier]

    def _row(self, row: Row, place: int) -> Row:
        if row is None:
            return None
        shares: dict[str, float] = {}
        for name, share in ({row: 1.0} if isinstance(row, str) else row).items():
            meant = (OUTSIDE,) if name == OUTSIDE else self.meanings(name[2:], place)
            if len(meant) > 1:
                return None
            now = OUTSIDE if meant[0] in (OUTSIDE, NOTHING) else name[:2] + meant[0]
            shares[now] = shares.get(now, 0.0) + share
        return next(iter(shares)) if isinstance(row, str) else shares

    def open_rows(self, rows: Sequence[Row], place: int) -> tuple[OpenMark, ...]:
        """Return the open spans of BIO tags; a row with shares counts as its likeliest tag."""
        hard = [{row: 1.0} if isinstance(row, str) else row or {OUTSIDE: 1.0} for row in rows]
        likeliest = [max(row, key=row.__getitem__) for row in hard]
        marked = (Mark(span.start, span.end, span.type) for span in spans(likeliest))
        return self.marks(marked, place)[1]

    def suggestion(self, earlier: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a model's suggestion with the tags of now, without what they leave open."""
        place = 0 if earlier is None else self.at_change(earlier.get("tag_change", 0))
        if earlier is None or place >= len(self.changes):
            return earlier
        meant = [(span, self.meanings(span["tag"], place)) for span in earlier["spans"]]
        kept = [span | {"tag": now[0]} for span, now in meant if len(now) == 1 and now[0]]
        return {**earlier, "spans": kept}

    def unasked(self, place: int) -> frozenset[str]:
        """Return the tags of now that nobody looked for at a place: added later, or retired."""
        if place not in self._unasked:
            undone, tags = self.undone, set[str]()
            for at, change in enumerate(self.changes):
                later = change.kind == "add" and change.details.get("earlier") == "unknown"
                if later and at >= place and change.id not in undone:
                    tags |= {*self.meanings(change.tag, at + 1)}
                if change.kind == "retire" and at < place and change.id in undone:
                    until = self.at_change(undone[change.id].id)
                    tags |= {*self.meanings(change.tag, until)} if place < until else set()
            self._unasked[place] = frozenset(tags - {NOTHING})
        return self._unasked[place]


def newest_change(conn: Connection) -> int:
    """Return the id of the last change of the tags, 0 without one."""
    return int(conn.execute(_NEWEST).scalar_one())


def read_tag_history(conn: Connection) -> TagHistory:
    """Return all changes of the tags in order."""
    rows = conn.execute(select(tag_changes).order_by(tag_changes.c.id))
    return TagHistory(
        tuple(
            TagChange(
                row.id, row.kind, row.tag, loads(row.details), row.annotator_id, row.at, row.after
            )
            for row in rows
        )
    )


def part_without(sure: Ranges | None, opened: Sequence[OpenMark], length: int) -> Ranges | None:
    """Return the sure part of an answer without its open spans."""
    if not opened:
        return sure
    ranges = list(((0, length),) if sure is None else sure)
    for mark in opened:
        ranges = [
            (start, end)
            for a, b in ranges
            for start, end in ((a, min(b, mark.start)), (max(a, mark.end), b))
            if start < end
        ]
    return tuple(ranges)
