"""What a newer seqmix wrote is refused in one line that says to upgrade, and left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.errors import SeqMixError
from seqmix.loop.rounds import read_rounds
from seqmix.serve.project import open_project
from seqmix.starter.loader import base_encoder
from seqmix.tagger import Tagger


def project(folder: Path) -> None:
    text = folder.with_name("notes.txt")
    text.write_text("Lena left Oslo.\n")
    assert run(["init", str(folder), "--text", str(text), "--tags", "PER"]) == 0


@pytest.mark.parametrize(
    ("name", "text", "reader"),
    [
        ("rounds.jsonl", '{"format_version": 999}\n', read_rounds),
        ("tagger.json", '{"format_version": 999}', Tagger.load),
        (
            "adapt.json",
            '{"format_version": 999, "base": "starter"}',
            lambda f: base_encoder(str(f)),
        ),
        ("project.toml", 'format_version = 999\nname = "p"\ntags = ["PER"]\n', open_project),
    ],
)
def test_a_newer_format_is_refused_and_left_as_it_is(tmp_path, name, text, reader) -> None:
    folder = tmp_path / "folder"
    if name == "project.toml":
        project(folder)
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)

    with pytest.raises(SeqMixError, match=r"999.*upgrade seqmix") as refused:
        reader(folder)

    assert "\n" not in str(refused.value) and (folder / name).read_text() == text
