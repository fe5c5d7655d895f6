"""Every command of the README works, with what its install line brings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "walk_readme.py"


@pytest.mark.ci
def test_every_command_of_the_readme_works_where_no_optional_package_is_installed() -> None:
    """On less data and with fewer steps; the sweep is a dry run."""
    ended = subprocess.run(
        [sys.executable, SCRIPT, "--quick"], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == "17 commands, 0 failed"


def test_every_command_says_how_long_it_takes_and_a_large_download_can_be_avoided() -> None:
    page = (SCRIPT.parents[1] / "README.md").read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"```console\n(.*?)```", page, flags=re.S)
        for line in block.splitlines()
        if line
    ]

    assert len(lines) >= 14
    for line in lines:
        assert re.search(
            r"#.*(\d|½|quarter of an hour).*(s|min|hour)\b|how long the rest takes|until Ctrl-C",
            line,
        ), line
    assert "install PyTorch's CPU build first" in page
