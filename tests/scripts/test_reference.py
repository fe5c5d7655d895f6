"""The reference pages of docs are what the code says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seqmix.app.cli import COMMANDS
from seqmix.app.config import Config
from seqmix.settings import described_keys

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["cli", "config"])
def test_a_page_is_current(page: str) -> None:
    words = [sys.executable, str(ROOT / "scripts" / "reference.py"), page, "--check"]

    assert subprocess.run(words, check=False).returncode == 0, (
        f"docs/{page}.md is old; run: python scripts/reference.py {page}"
    )


def test_every_command_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    for group, entries in COMMANDS.items():
        assert f"\n## {group}\n" in text
        for name, entry in entries.items():
            assert f"\n### seqmix {name}\n" in text and f"\n{entry.example}\n" in text


def test_every_key_of_a_config_is_described_by_a_sentence() -> None:
    keys = [
        (f"{section}.{key}", sentence)
        for section, field, _ in described_keys(Config)
        for key, _, sentence in described_keys(field.annotation)
    ]

    assert len(keys) > 50
    assert not [key for key, sentence in keys if not sentence.endswith(".") or "\n" in sentence]
