"""How good each source of suggestions is, for `seqmix info`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from seqmix.app.console import count, percent


def source_lines(sources: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what people kept of each source, and its F1 on the audit stream."""
    if sources:
        yield "sources:"
    for row in sources:
        kind = [] if row["kind"] == row["name"] else [row["kind"]]
        notes = ", ".join(kind + ([] if row["on"] else ["off"]))
        name = f"{row['name']} ({notes})" if notes else row["name"]
        yield f"  {name}: {', '.join((_kept(row), *_f1(row)))}"
        if row.get("trouble"):
            yield f"    does not suggest: {row['trouble']}"
        if row.get("slow"):
            yield f"    left out because they are slow: {', '.join(row['slow'])}"


def _kept(row: dict[str, Any]) -> str:
    if not row["offered"]:
        return "nothing suggested to anybody yet"
    share = round(100 * row["kept"] / row["offered"])
    return f"{row['kept']} of {count(row['offered'], 'suggestion')} kept ({share} %)"


def _f1(row: dict[str, Any]) -> Iterator[str]:
    if "f1" not in row:  # the project's model, whose F1 has a line of its own
        return
    f1 = row["f1"]
    if f1 is None:
        yield "F1 not known yet"
        return
    interval = f"{percent(f1['low'])} to {percent(f1['high'])}, {100 * f1['level']:g} %"
    yield f"F1 {percent(f1['f1'])} ({interval}) on {count(f1['n'], 'random sentence')}"
