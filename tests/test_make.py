"""make finds a Python, whichever from 3.11 on is there, and says so when there is none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed")


def make(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    words = [
        str(MAKE),
        "-C",
        str(ROOT),
        f"VENV={path / 'venv'}",
        *arguments,
        f"{path / 'venv'}/ready",
    ]
    return subprocess.run(
        words, env={"PATH": str(path)}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", ["python3", "python3.11", "python3.12", "python3.13"])
def test_any_recent_python_is_taken(name: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to(sys.executable)

    ended = make("-n", path=tmp_path)

    assert ended.returncode == 0
    assert f"{name} -m venv {tmp_path}/venv" in ended.stdout.splitlines()


@pytest.mark.parametrize("there", ["nothing", "an old one"])
def test_without_a_recent_python_it_says_what_to_install(there: str, tmp_path: Path) -> None:
    if there == "an old one":
        (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "python3").chmod(0o755)

    ended = make(path=tmp_path)

    assert ended.returncode != 0
    assert "seqmix needs Python 3.11 or later" in ended.stderr and "python3-venv" in ended.stderr
    assert not (tmp_path / "venv").exists()
