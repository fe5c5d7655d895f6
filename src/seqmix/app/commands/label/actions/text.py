"""Actions on the text of a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from seqmix.app.commands.label.actions.call import Call
from seqmix.app.commands.label.init import checked, with_progress
from seqmix.app.console import emit, progress
from seqmix.app.options import ReadOptions, parse_read
from seqmix.app.reading.text import read_text
from seqmix.data.sentence import Sentence

LABELS = ("keep", "drop")


def add(call: Call) -> None:
    """Add the text of files; who annotates meanwhile is not kept waiting."""
    from seqmix.serve.project import add_text
    from seqmix.serve.store.current import read_counts

    *names, last = call.words
    labels = last if names and last in LABELS and not Path(last).exists() else None
    names = names if labels else [*names, last]
    with call.open() as project, progress("reading", "sentences") as update:
        reading = parse_read(call.read, "column", "unit", tokenizer=project.settings.tokens)
        sentences = with_progress(_all(names, reading, labels), update)
        added = add_text(project, sentences, keep_labels=labels == "keep")
        counts = read_counts(project.store)
    parts = [f"{added.new} new", f"{added.audit} of them set apart for the audit"]
    parts += [f"{added.duplicates} skipped, since the project has them"] * bool(added.duplicates)
    parts += [f"{added.empty} without tokens left out"] * bool(added.empty)
    parts += [f"{n} {what}" for what, n in sorted(reading.options.counts.items())]
    emit(f"{call.folder}: {'; '.join(parts)}; {counts.left} sentences to label")


def _all(names: Iterable[str], reading: ReadOptions, labels: str | None) -> Iterator[Sentence]:
    for name in names:
        yield from checked(read_text(name, reading), labels, name, "the last word ")
