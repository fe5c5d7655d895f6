"""The examples run, and end with a tagger that has learned something."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_a_folder_of_text_becomes_a_tagger() -> None:
    run = subprocess.run(
        [sys.executable, EXAMPLES / "01_folder_of_text_to_tagger.py"],
        capture_output=True,
        text=True,
        check=True,
    )

    scores = [float(found) for found in re.findall(r"F1 (0\.\d+)", run.stdout)]
    assert len(scores) == 3
    assert scores[-1] > scores[0]
    # 48 sentences are few: whether the name goes on with "Okafor" is luck
    assert re.search(r"^PER Lena", run.stdout, flags=re.M)
    assert re.search(r"^ORG University of", run.stdout, flags=re.M)


def test_every_example_is_told_of() -> None:
    told = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for example in EXAMPLES.glob("*.py"):
        assert f"({example.name})" in told
