"""How long answers took, for `seqmix info`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seqmix.app.console import count


def pace_lines(pace: dict[str, Any] | None) -> Iterator[str]:
    """Yield the median time of an answer, and where the time goes."""
    if pace is None:
        return
    model = pace["model"]
    per_token, per_mark = f"{model['token']:.2f} s per token", f"{model['span']:.1f} s per mark"
    parts = f"{model['sentence']:.1f} s + {per_token} + {per_mark}"
    yield f"time: {pace['seconds']:.1f} s per answer, median of {pace['answers']}; about {parts}"
    for part in pace["by_tag"]:
        yield f"  a mark of {part['tag']}: {part['seconds']:.1f} s ({count(part['spans'], 'mark')})"
    for name, kind in (("by_stream", "stream"), ("by_source", "source")):
        for part in pace[name]:
            ratio = "" if part["ratio"] is None else f", {part['ratio']:.1f} of the usual time"
            answers = count(part["answers"], "answer")
            yield f"  {kind} {part[kind]}: {part['seconds']:.1f} s ({answers}{ratio})"
