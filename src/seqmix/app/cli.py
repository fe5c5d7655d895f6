"""The command `seqmix`: its table of commands, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from seqmix import __version__
from seqmix.app.console import emit, err, say
from seqmix.errors import SeqMixError


class CommandHelp(NamedTuple):
    """A row of the table."""

    summary: str
    example: str


# The command NAME of a group is the function NAME in commands/FOLDER/NAME.py.
FOLDERS: Mapping[str, str] = {
    "Label": "label",
    "Train": "train",
    "Augment and simulate": "simulate",
    "Scale": "scale",
    "Files": "files",
}
COMMANDS: Mapping[str, Mapping[str, CommandHelp]] = {  # in the order of --help
    "Label": {
        "init": CommandHelp(
            "Create a project from raw text for people to label.",
            "seqmix init names --text notes.txt --tags PER,ORG,LOC",
        ),
        "annotate": CommandHelp(
            "Label the sentences of a project on a page in the browser.",
            "seqmix annotate names",
        ),
        "export": CommandHelp(
            "Export a project's labels to a file, or a tagger to hf, onnx, spacy and others.",
            "seqmix export names --out labels.conll",
        ),
        "labelstudio": CommandHelp(
            "Serve a project to Label Studio: suggest labels and choose what to label next.",
            "seqmix labelstudio --folder names",
        ),
        "project": CommandHelp(
            "Show or change a project's settings, tags and annotators, or back it up.",
            "seqmix project names annotator add omar",
        ),
    },
    "Train": {
        "train": CommandHelp(
            "Train a tagger on labeled data.",
            "seqmix train gazette:train --dev gazette:dev --out ner",
        ),
        "evaluate": CommandHelp(
            "Score a tagger, or a file of predictions, as conlleval does.",
            "seqmix evaluate ner gazette:test",
        ),
        "predict": CommandHelp(
            "Tag sentences; labels they already have are ignored.",
            "seqmix predict ner notes.txt --out notes.jsonl --confidence",
        ),
        "serve": CommandHelp(
            "Serve a tagger's predictions over HTTP.",
            "seqmix serve ner",
        ),
        "adapt": CommandHelp(
            "Adapt an encoder to unlabeled text before a tagger is trained on it.",
            "seqmix adapt notes.txt --out encoder",
        ),
    },
    "Augment and simulate": {
        "augment": CommandHelp(
            "Generate labeled sentences from labeled ones.",
            "seqmix augment gazette:train --rate 0.2 --out more.jsonl",
        ),
        "simulate": CommandHelp(
            "Run the whole loop on labeled data: query, label, augment, train, evaluate.",
            "seqmix simulate --preset demo --data gazette --out runs/a",
        ),
        "report": CommandHelp(
            "Write an HTML report comparing runs.",
            "seqmix report runs/a runs/b --out report.html",
        ),
    },
    "Scale": {
        "rank": CommandHelp(
            "Rank text of any size and keep the sentences most worth labeling.",
            "seqmix rank notes.txt --model ner --top 50 --out top.jsonl",
        ),
        "sweep": CommandHelp(
            "Run the arms of an experiment with several seeds into one table of results.",
            "seqmix sweep experiments/smoke.toml --out sweeps/smoke --workers 2",
        ),
    },
    "Files": {
        "convert": CommandHelp(
            "Convert labeled data from one format to another.",
            "seqmix convert export.json train.conll",
        ),
        "info": CommandHelp(
            "Describe a run, a project, a tagger, a corpus, a pool or this installation.",
            "seqmix info runs/a",
        ),
    },
}
WELCOME = """\
seqmix: from raw text and a few labels to a good tagger. Three commands to try:

  seqmix init names --text notes.txt --tags PER,ORG,LOC     your text; then: seqmix annotate names
  seqmix train gazette:train --quick --limit 100 --out ner  a tagger; then: seqmix predict ner FILE
  seqmix simulate --preset demo --data gazette --out run    active learning with SeqMix, simulated

seqmix --help lists all commands; seqmix COMMAND --help ends with an example."""


class CommandTable(TyperGroup):
    """The commands by name; the module of one is imported when it is used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=entry.summary, rich_help_panel=group)
            for group, entries in COMMANDS.items()
            for name, entry in entries.items()
        }

    def resolve_command(
        self, ctx: Any, args: list[str]
    ) -> tuple[str | None, TyperCommand | None, list[str]]:
        """Replace the stand-in of the command that is used by the command itself."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, load(name) if name and stand_in else None, rest


def load(name: str) -> TyperCommand:
    """Import a command."""
    group = next(group for group, entries in COMMANDS.items() if name in entries)
    module = import_module(f"seqmix.app.commands.{FOLDERS[group]}.{name}")
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name, epilog=f"Example: {COMMANDS[group][name].example}")(getattr(module, name))
    command = typer.main.get_command(single)
    assert isinstance(command, TyperCommand)  # one function gives one command
    return command


app = typer.Typer(cls=CommandTable, pretty_exceptions_enable=False, rich_markup_mode="rich")


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


def run(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code; an expected error is one line and code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    rest = [argument for argument in arguments if argument != "--debug"]
    try:
        result = app(["--debug"] * debug + rest, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (SeqMixError, OSError) as error:
        if debug:
            err.print_exception()
        say(f"error: {_one_line(error)}")
        return 2
    except Exception as error:
        usage: Any = error
        if not hasattr(error, "show"):
            raise
        usage.show()  # a wrong use of the command line, in the words of the library that reads it
        return int(usage.exit_code)


def _one_line(error: SeqMixError | OSError) -> str:
    """Say what went wrong; an OSError no command foresaw is a full disk or a folder not ours."""
    if isinstance(error, SeqMixError):
        return str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    return f"{place}{error.strerror or error}"


def entry() -> None:
    """Run as the console script."""
    sys.exit(run())
