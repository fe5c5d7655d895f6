"""Commands as people run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from seqmix.app.cli import run


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code and what it said where."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def seqmix_command(capfd) -> Command:
    def command(*arguments: object) -> Ended:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Ended(code, *capfd.readouterr())

    return command
