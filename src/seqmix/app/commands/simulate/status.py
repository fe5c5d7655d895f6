"""`seqmix status`: how far a run or a project is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import emit
from seqmix.app.options import Json
from seqmix.errors import RunError


def status(
    path: Annotated[Path, typer.Argument(help="A run directory or a project folder.")],
    json_out: Json = False,
) -> None:
    """Show the progress of a run or a project."""
    if (path / "project.toml").exists():
        from seqmix.app.commands.label.project_facts import facts, lines
        from seqmix.serve.project import open_project

        with open_project(path) as project:
            found = facts(project)
        emit(json.dumps(found, ensure_ascii=False) if json_out else "\n".join(lines(found)))
        return
    from seqmix.loop.rounds import read_rounds

    if not (path / "config.toml").exists():
        raise RunError(
            f"{path} is neither a run directory (no config.toml) nor a project (no project.toml)"
        )
    rounds = read_rounds(path)
    emit(json.dumps({"rounds": rounds}) if json_out else "\n".join(_table(rounds)))


def _table(rounds: list[dict[str, Any]]) -> Iterator[str]:
    """One line per round."""
    yield f"{'round':>5} {'labeled':>8} {'generated':>9} {'dev F1':>7} {'test F1':>7}  next gain (90 %)"
    for line in rounds:
        cells = [
            f"{100 * line[name]['f1']:7.2f}" if name in line else "      –"
            for name in ("dev", "test")
        ]
        ahead = line["forecast"]
        gain = (
            f"{100 * ahead['gain']:+.2f} ({100 * ahead['low']:+.2f} to {100 * ahead['high']:+.2f})"
            if ahead
            else ""
        )
        yield f"{line['round']:>5} {line['labeled']:>8} {line['generated']:>9} {cells[0]} {cells[1]}  {gain}".rstrip()
    if rounds and rounds[-1]["stop"]:
        yield f"stopped: {rounds[-1]['stop']}"
    else:
        yield "not finished: the same simulate command resumes it"
