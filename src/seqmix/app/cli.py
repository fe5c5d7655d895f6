"""The command `seqmix`: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from seqmix import __version__
from seqmix.app.commands import adapt as adapting
from seqmix.app.commands import annotate as annotating
from seqmix.app.commands import augment as augmenting
from seqmix.app.commands import files as corpora
from seqmix.app.commands import labelstudio as serving
from seqmix.app.commands import migrate as migrating
from seqmix.app.commands import projects
from seqmix.app.commands import rank as scoring
from seqmix.app.commands import simulate as simulating
from seqmix.app.commands import sweep as sweeping
from seqmix.app.commands import train as tagging
from seqmix.app.console import emit, err, say
from seqmix.errors import SeqMixError

Command = Callable[..., None]
COMMANDS: Mapping[
    str, Sequence[tuple[Command, str]]
] = {  # in the order of --help, each with an example
    "Label": (
        (projects.init, "seqmix init names --text notes.txt --tags PER,ORG,LOC"),
        (annotating.annotate, "seqmix annotate names"),
        (projects.export, "seqmix export names --out labels.conll"),
        (serving.serve, "seqmix serve --label-studio --folder backend"),
    ),
    "Train": (
        (tagging.train, "seqmix train gazette:train --dev gazette:dev --out ner"),
        (tagging.evaluate, "seqmix evaluate ner gazette:test"),
        (tagging.predict, "seqmix predict ner notes.txt --out notes.jsonl --confidence"),
        (adapting.adapt, "seqmix adapt notes.txt --out encoder"),
    ),
    "Augment and simulate": (
        (augmenting.augment, "seqmix augment gazette:train --rate 0.2 --out more.jsonl"),
        (simulating.simulate, "seqmix simulate --preset demo --data gazette --out runs/a"),
        (simulating.status, "seqmix status runs/a"),
        (simulating.report, "seqmix report runs/a runs/b --out report.html"),
    ),
    "Scale": (
        (scoring.score, "seqmix score notes.txt --model ner --top 50 --out top.jsonl"),
        (sweeping.sweep, "seqmix sweep experiments/smoke.toml --out sweeps/smoke --workers 2"),
    ),
    "Files": (
        (corpora.convert, "seqmix convert export.json train.conll"),
        (corpora.info, "seqmix info train.conll"),
        (migrating.migrate, "seqmix migrate runs/a"),
    ),
}
WELCOME = """\
seqmix: from raw text and a few labels to a good tagger. Three commands to try:

  seqmix init names --text notes.txt --tags PER,ORG,LOC    your own text, then: seqmix annotate names
  seqmix train gazette:train --out ner                     a tagger of the sample corpus, or of your file
  seqmix simulate --preset demo --data gazette --out run   how active learning with SeqMix goes, without people

seqmix --help lists all commands; seqmix COMMAND --help ends with an example."""

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """From raw text and a few labels to a good tagger."""
    if version:
        emit(f"seqmix {__version__}")
    elif context.invoked_subcommand is None:
        emit(WELCOME)


for panel, commands in COMMANDS.items():
    for command, example in commands:
        app.command(rich_help_panel=panel, epilog=f"Example: {example}")(command)
app.add_typer(projects.project, name="project", rich_help_panel="Label")
app.add_typer(scoring.pool, name="pool", rich_help_panel="Scale")


def run(arguments: list[str] | None = None) -> int:
    """The whole command: an expected error is one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    try:
        ended = app(
            ["--debug"] * debug + [a for a in arguments if a != "--debug"], standalone_mode=False
        )
        return ended if isinstance(ended, int) else 0
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
    except Exception as error:
        shown: Any = error
        if not hasattr(error, "show"):
            raise
        shown.show()  # a wrong use of the command line, in the words of the library that reads it
        return int(shown.exit_code)


def entry() -> None:
    """The console script."""
    sys.exit(run())
