"""The tutorials work as they are written, and show what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from walk_tutorials import BLOCK, TUTORIALS, follow, lines_seen

SCRIPT = ROOT / "scripts" / "walk_tutorials.py"
NAMES = sorted(path.stem for path in TUTORIALS.glob("*.md"))


@pytest.mark.ci
@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_can_be_followed_to_its_end(name: str) -> None:
    """With fewer steps and answers than the page says."""
    words = [sys.executable, SCRIPT, name, "--quick"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == f"{name}: followed to the end"


@pytest.mark.parametrize("name", NAMES)
def test_every_block_of_a_tutorial_is_followed(name: str) -> None:
    text = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")

    assert text.count("\n```\n") == len(BLOCK.findall(text)) > 4
    assert "\n```text" in text


def test_numbers_may_differ_and_words_may_not() -> None:
    output = "one\nF1 0.81,  written to ner after 12 s\nthree\n"

    assert lines_seen("F1 0.79, written to ner after 1 s\nthree\n", output) == [
        "F1 0.81,  written to ner after 12 s",
        "three",
    ]
    for lie in ("F1 0.79, written to him after 1 s\n", "three\none\n"):
        with pytest.raises(SystemExit, match=re.escape(lie.splitlines()[0])):
            lines_seen(lie, output)


def test_a_page_is_followed_in_one_folder_and_gets_what_was_seen(tmp_path: Path) -> None:
    page = (
        "```toml\n# a.toml\nx = 1\n```\n"
        "```python\nprint(open('a.toml').read(), 7)\n```\n```text\nx = 2\n```\n"
        "```console\nseqmix --version # which\n```\n```text\nseqmix 9.9.9\n```\n"
    )

    seen = follow(page, tmp_path, quick=False)

    assert "x = 1\n```\n```console" in seen and "seqmix 9.9.9" not in seen
    with pytest.raises(SystemExit, match="does not know"):
        follow("```console\nrm -r notes\n```\n", tmp_path, quick=False)
    with pytest.raises(SystemExit, match="ended with 2"):
        follow("```console\nseqmix info nowhere\n```\n", tmp_path, quick=False)
