"""How each tag does and what annotators confuse, for `seqmix info`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from seqmix.app.console import count, percent

_MOST = 10  # differences that are listed


def tag_lines(tags: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the marks of each tag, and its F1 where that is known; nothing without marks."""
    if not any(row["spans"] for row in tags):
        return
    yield "by tag:"
    for row in tags:
        f1 = row["f1"]
        shown = "" if f1 is None else f", F1 {percent(f1['f1'])} ({_interval(f1)})"
        sentences = count(row["sentences"], "sentence")
        yield f"  {row['tag']}: {count(row['spans'], 'mark')} in {sentences}{shown}"


def confusion_lines(confused: dict[str, Any] | None) -> Iterator[str]:
    """Yield how annotators agree on each tag, and what differs most often."""
    if confused is None:
        return
    for row in confused["tags"]:
        yield f"  {row['tag']}: span F1 {percent(row['f1'])} on {count(row['marks'], 'mark')}"
    for difference in confused["differences"][:_MOST]:
        times = count(difference["n"], "time")
        yield f"  {_said(difference)}: {times}, such as in {difference['example']}"


def _said(difference: dict[str, Any]) -> str:
    a, b, tag_a, tag_b = (difference[key] for key in ("a", "b", "tag_a", "tag_b"))
    if tag_a is None:
        return f"{b} marks {tag_b}, {a} nothing"
    if tag_b is None:
        return f"{a} marks {tag_a}, {b} nothing"
    if tag_a == tag_b:
        return f"{a} and {b} mark {tag_a} with different boundaries"
    boundaries = ", with different boundaries" if difference["ends"] else ""
    return f"{a} marks {tag_a}, {b} {tag_b}{boundaries}"


def _interval(f1: dict[str, Any]) -> str:
    return f"{percent(f1['low'])} to {percent(f1['high'])}, {100 * f1['level']:g} %"
