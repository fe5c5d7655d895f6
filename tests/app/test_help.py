"""Help: commands and options in groups, an example at the end, nothing cut, and quickly."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import typer

from seqmix.app.cli import COMMANDS, app, run

GROUPS = ("Label", "Train", "Augment and simulate", "Scale", "Files")
TOP = typer.main.get_command(app).commands
ALL = [(name,) for name in TOP if not hasattr(TOP[name], "commands")]
ALL += [(name, inner) for name, group in TOP.items() for inner in getattr(group, "commands", ())]


def shown(capfd, *arguments: str) -> str:
    capfd.readouterr()
    assert run([*arguments, "--help"]) == 0
    return capfd.readouterr().out


def test_commands_stand_in_groups_and_no_summary_is_cut(capfd):
    told = shown(capfd)

    assert re.findall(r"─ ([A-Z][\w ]+) ─", told) == ["Options", *GROUPS] == ["Options", *COMMANDS]
    assert "…" not in told and "..." not in told.replace("[ARGS]...", "")
    assert all(re.search(rf"│ {name} ", told) for name in TOP)


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_each_command_ends_with_an_example_that_can_be_parsed(capfd, command):
    last = shown(capfd, *command).strip().splitlines()[-1].strip()

    assert last.startswith(f"Example: seqmix {' '.join(command)} ")
    words = last.split()[2 + len(command) :]
    known = TOP[command[0]] if len(command) == 1 else TOP[command[0]].commands[command[1]]
    known.make_context(command[-1], words)


@pytest.mark.parametrize(("command", "groups"), [("init", 4), ("train", 4), ("augment", 7)])
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
    assert len(tried) == 3 and set(tried) <= TOP.keys() and "seqmix --help" in ended.stdout


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
    code = f"import sys; from seqmix.app.cli import run; run(['--help']); sys.exit(' '.join(m for m in {heavy} if m in sys.modules) or None)"

    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")
