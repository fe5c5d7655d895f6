"""What is written for contributors and for citing agrees with the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import seqmix

ROOT = Path(__file__).parents[1]


def recipe(target: str) -> list[str]:
    """The commands of a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (lines,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.M)
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in lines.splitlines()]


def test_the_hooks_before_a_commit_are_those_of_make_check() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (local,) = config["repos"]

    assert [hook["entry"] for hook in local["hooks"]] == recipe("check")
    for hook in local["hooks"]:
        assert hook["id"] and hook["name"]
        assert (hook["language"], hook["pass_filenames"]) == ("system", False)


def test_the_commands_for_contributors_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(.*?)```", page, re.S)
    commands = block.splitlines()

    assert len(commands) == 5
    for command in commands:
        if command.startswith("make "):
            assert recipe(command.removeprefix("make "))
    assert (ROOT / "tests" / "data").is_dir()
    for target in re.findall(r"\]\(([^)#:]+)[)#]", page):
        assert (ROOT / target).exists(), target


def test_the_citation_has_what_its_schema_requires() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert citation.keys() >= {"cff-version", "message", "title", "authors"}
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == project["version"] == seqmix.__version__
    assert citation["license"] == project["license"]
    (paper,) = citation["references"]
    assert paper.keys() >= {"type", "title", "authors"}
    assert [author["family-names"] for author in paper["authors"]] == ["Zhang", "Yu", "Zhang"]
