"""Every command of the README works, with what its install line brings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "walk_readme.py"


def test_every_command_of_the_readme_works_where_no_optional_package_is_installed() -> None:
    """On less data and with fewer steps; the sweep is a dry run."""
    ended = subprocess.run([sys.executable, SCRIPT, "--quick"], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == "15 commands, 0 failed"
