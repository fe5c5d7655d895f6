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


def packages(lock: str) -> set[str]:
    """The names and versions a lock pins."""
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    return {line.split()[0].rstrip(";") for line in lines if line[:1].isalnum()}


@pytest.mark.parametrize(
    ("target", "everything"), [("install", False), ("demo", False), ("test", True)]
)
def test_only_what_needs_all_packages_installs_them(
    target: str, everything: bool, tmp_path: Path
) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)

    ended = subprocess.run(
        [str(MAKE), "-n", "-C", str(ROOT), f"VENV={tmp_path / 'venv'}", target],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "--require-hashes --no-deps -r requirements-core.lock" in ended.stdout
    assert ("-r requirements.lock" in ended.stdout) == everything


def test_what_the_commands_need_is_a_small_part_of_all_and_in_the_same_versions() -> None:
    core, everything = packages("requirements-core.lock"), packages("requirements.lock")

    assert core < everything
    assert len(core) < len(everything) / 2
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert f"({len(core)} packages, `requirements-core.lock`)" in page
    assert not {name for name in core if name.startswith(("pytest", "mypy", "ray", "spacy"))}
