"""Write an HTML report comparing runs, with its figures and numbers in a folder beside it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from seqmix.data.files import replacing, write_text
from seqmix.data.overwriting import FolderKind
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.report import plots
from seqmix.report.case import STYLE
from seqmix.report.comparison import Comparison
from seqmix.report.curves import as_csv, load_runs, shared_split
from seqmix.report.generated import generated_examples, generated_sentences
from seqmix.report.markup import PAGE, PAGE_STYLE, many, refuse_other_file, table
from seqmix.report.scores import (
    entity_types,
    learning_curves,
    paired_tests,
    seeds_and_sentences,
    summary,
)

_FILES = FolderKind("a report", ("curves.csv",), ("*.png",))


def write_report(
    runs: Sequence[Path], out: Path, split: str | None = None, sentences: Iterable[Sentence] = ()
) -> Path:
    """Write the page, PNG and CSV files in `<stem>_files` beside it, and return that folder.

    The split is test where every run was scored on it, else dev.
    With the labeled `sentences`, examples are shown with their parents.
    """
    refuse_other_file(out)
    loaded = load_runs(runs)
    if split is not None and not all(
        split in round.results for run in loaded for round in run.rounds
    ):
        raise DataError(
            f"not every run was scored on {split}; leave the split out to use one that all have"
        )
    parents = {sentence.id: sentence for sentence in sentences}
    comparison = Comparison(loaded, split or shared_split(loaded), parents)
    page = _page(comparison)
    folder = out.with_name(f"{out.stem}_files")
    with replacing(folder, _FILES) as unfinished:
        for name, picture in comparison.pictures.items():
            (unfinished / f"{name}.png").write_bytes(picture)
        (unfinished / "curves.csv").write_text(as_csv(loaded), encoding="utf-8", newline="\n")
    write_text(out, page)
    return folder


def _page(comparison: Comparison) -> str:
    sections: list[Callable[[Comparison], str]] = [
        summary,
        paired_tests,
        seeds_and_sentences,
        learning_curves,
        entity_types,
        generated_sentences,
        generated_examples,
        _time,
        _runs,
    ]
    body = "\n".join(
        f"<section>{text}</section>" for section in sections if (text := section(comparison))
    )
    compared = "compared " if len(comparison.arms) > 1 else ""
    lead = (
        f"{many(len(comparison.runs), 'run')} of {many(len(comparison.arms), 'arm')}, "
        f"F1 on <b>{comparison.split}</b>, "
        f"{compared}at {many(comparison.last, 'labeled sentence')}."
    )
    return PAGE.format(style=STYLE + PAGE_STYLE, lead=lead, body=body)


def _time(comparison: Comparison) -> str:
    seconds: dict[str, dict[str, float]] = {}
    for arm, runs in comparison.arms.items():
        times = [
            run.seconds.get(record.number, {})
            for run in runs
            for record in run.rounds
            if record.labeled <= comparison.last
        ]
        seconds[arm] = {
            phase: sum(spent.get(phase, 0.0) for spent in times) / len(runs)
            for phase in dict.fromkeys(phase for spent in times for phase in spent)
        }
    if not any(sum(by_phase.values()) > 0 for by_phase in seconds.values()):
        return ""
    upto = many(comparison.last, "labeled sentence")
    return "<h2>Time</h2>" + comparison.draw(
        "time",
        plots.phase_bars(seconds),
        f"Seconds per run by phase, up to {upto}, mean over seeds.",
        large=True,
    )


def _runs(comparison: Comparison) -> str:
    rows = []
    for run in comparison.runs:
        last = run.rounds[-1]
        rows.append(
            [
                comparison.label(run.arm),
                str(run.seed),
                str(len(run.rounds)),
                str(last.labeled),
                html.escape(str(last.stop or "not ended")),
                html.escape(str(run.path)),
            ]
        )
    head = ["arm", "seed", "rounds", "labeled", "ended by", "directory"]
    return f"<details><summary>The runs</summary>{table(head, rows)}</details>"
