"""A few kills of each command, and a bug put in on purpose.

It is the shortest form of `make faults`, which the suite leaves to it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at open files in /proc"),
]


def kills(*given: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.kills", *given],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_killed_commands_lose_nothing_and_go_on_to_the_same_bytes() -> None:
    said = kills("--kills", "16")

    assert said.endswith(": 0 things wrong\n") and said.count("; 0 wrong\n") == 8


def test_the_harness_finds_a_missing_fsync() -> None:
    said = kills("--kills", "40", "--only", "simulate", "--plant", "no fsync")

    assert "WRONG: simulate: power cut" in said
