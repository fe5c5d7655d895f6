"""Help: commands and options in groups, an example at the end, nothing cut, and quickly."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest
import typer

from seqmix.app.cli import COMMANDS, app, load, run

GROUPS = ("Label", "Train", "Augment and simulate", "Scale", "Files")
NAMES = [name for entries in COMMANDS.values() for name in entries]


def shown(capfd, *arguments: str) -> str:
    capfd.readouterr()
    assert run([*arguments, "--help"]) == 0
    return capfd.readouterr().out


def test_commands_are_in_groups_and_no_summary_is_cut(capfd):
    text = shown(capfd)

    assert re.findall(r"─ ([A-Z][\w ]+) ─", text) == ["Options", *GROUPS] == ["Options", *COMMANDS]
    assert "…" not in text and "..." not in text.replace("[ARGS]...", "")
    assert all(re.search(rf"│ {name} ", text) for name in NAMES)


def test_there_are_at_most_17_commands_and_120_options():
    commands = [typer.main.get_command(app), *map(load, NAMES)]
    options = [p for c in commands for p in c.params if p.param_type_name == "option"]

    assert len(NAMES) <= 17
    assert len([option for option in options if option.name != "help"]) <= 120


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_a_summary_and_an_example_that_can_be_parsed(capfd, name):
    text = shown(capfd, name)
    last = text.strip().splitlines()[-1].strip()
    command = load(name)

    assert last.startswith(f"Example: seqmix {name} ")
    command.make_context(name, shlex.split(last)[3:])
    (summary,) = (entries[name].summary for entries in COMMANDS.values() if name in entries)
    assert summary.endswith(".") and summary in " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())
    assert (command.callback.__doc__ or "").startswith(summary)


@pytest.mark.parametrize(("command", "groups"), [("init", 2), ("train", 3), ("project", 3)])
def test_many_options_stand_in_groups(capfd, command, groups):
    assert len(re.findall(r"╭─ (?!Arguments)", shown(capfd, command))) >= groups


def test_completion_can_be_installed(capfd):
    assert "--install-completion" in shown(capfd)


def test_without_arguments_three_commands_are_proposed():
    ended = subprocess.run(
        [sys.executable, "-m", "seqmix"], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    tried = re.findall(r"^  seqmix (\w+)", ended.stdout, flags=re.M)
    assert len(tried) == 3 and set(tried) <= set(NAMES) and "seqmix --help" in ended.stdout


def test_help_loads_neither_torch_nor_scipy():
    heavy = (
        "fastapi",
        "matplotlib",
        "pyarrow",
        "ray",
        "scipy",
        "sqlalchemy",
        "torch",
        "transformers",
    )
    code = (
        "import sys; from seqmix.app.cli import run; run(['--help']); "
        f"sys.exit(' '.join(m for m in {heavy} if m in sys.modules) or None)"
    )

    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")
