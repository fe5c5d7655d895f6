"""An environment that has a wheel and what it requires, without a download."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def install_alone(wheel: Path, folder: Path) -> Path:
    """Install a wheel in a new environment, its requirements linked from ours; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pip(python, "install", "--no-deps", "--no-index", "--quiet", str(wheel))
    (site,) = folder.glob("lib/python*/site-packages")
    (installed,) = metadata.distributions(path=[str(site)])
    link(installed.requires or [], site)
    return python


def pip(python: Path, *words: str) -> str:
    """Run our pip on another environment; return its output."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    ended = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def link(requirements: list[str], site: Path) -> None:
    """Link the required distributions, and those they require, and nothing else."""
    waiting = [(Requirement(text), frozenset({""})) for text in requirements]
    linked: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement, extras = waiting.pop()
        if requirement.marker is not None and not any(
            requirement.marker.evaluate({"extra": extra}) for extra in extras
        ):
            continue
        wanted = (canonicalize_name(requirement.name), frozenset({"", *requirement.extras}))
        if wanted in linked:
            continue
        linked.add(wanted)
        distribution = metadata.distribution(requirement.name)
        for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(Path(str(distribution.locate_file(name))))
        waiting += [(Requirement(text), wanted[1]) for text in distribution.requires or ()]
