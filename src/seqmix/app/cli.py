"""The command `seqmix`: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from seqmix import __version__
from seqmix.app import adapting, annotating, augmenting, corpora, migrating, projects, scoring, serving, simulating, sweeping, tagging
from seqmix.app.console import emit, err, say
from seqmix.errors import SeqMixError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def main(
    debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """From raw text and a few labels to a good tagger."""
    if version:
        emit(f"seqmix {__version__}")
        raise typer.Exit()


for command in (
    projects.init,
    tagging.train,
    tagging.predict,
    tagging.evaluate,
    adapting.adapt,
    annotating.annotate,
    augmenting.augment,
    serving.serve,
    projects.export,
    simulating.simulate,
    simulating.status,
    simulating.report,
    sweeping.sweep,
    scoring.score,
    corpora.convert,
    corpora.info,
    migrating.migrate,
):
    app.command()(command)
app.add_typer(projects.project, name="project")
app.add_typer(scoring.pool, name="pool")


def run(arguments: list[str] | None = None) -> int:
    """The whole command: an expected error is one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    try:
        app(["--debug"] * debug + [a for a in arguments if a != "--debug"], standalone_mode=True)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except SeqMixError as error:
        if debug:
            err.print_exception()
        say(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # what no command has foreseen: a disk that is full or gone, a folder that is not ours
        if debug:
            err.print_exception()
        place = f"{error.filename}: " if error.filename is not None else ""
        say(f"error: {place}{error.strerror or error}")
        return 2
    return 0


def entry() -> None:
    """The console script."""
    sys.exit(run())
