"""`seqmix report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.console import emit
from seqmix.errors import RunError


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run directories: several seeds and arms make curves with intervals and tests."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The HTML page; figures and CSV go beside it.")],
) -> None:
    """Write an HTML report comparing runs."""
    from seqmix.report.page import write_report
    from seqmix.report.terminal import terminal_curve

    for run in runs:
        if not (run / "rounds.jsonl").is_file():
            raise RunError(
                f"{run}: is not a run directory: it has no rounds.jsonl"
                if run.exists()
                else f"{run}: there is no such run"
            )
    write_report(runs, out)
    emit(terminal_curve(runs))
    emit(f"report: {out}")
