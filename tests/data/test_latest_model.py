"""A project's newest model by a name that stays, and models in use that stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqmix.data.latest_model import clear_model, name_newest, newest_model, using_model
from seqmix.errors import ModelError


def project(folder: Path, *numbers: int) -> Path:
    (folder / "models").mkdir(parents=True)
    (folder / "project.toml").write_text("")
    for number in numbers:
        model(folder, number)
    return folder


def model(folder: Path, number: int) -> Path:
    path = folder / "models" / f"{number:03d}"
    path.mkdir()
    (path / "tagger.json").write_text("{}")
    return path


def test_the_project_its_models_and_latest_mean_the_newest_model(tmp_path):
    folder = project(tmp_path / "p", 3, 4)
    name_newest(folder / "models", "004")
    model(folder, 5)  # saved, but its trainer was killed before it said so

    assert {newest_model(folder / name) for name in ("", "models", "models/latest")} == {
        folder / "models" / "004"
    }
    assert newest_model(folder / "models" / "003") == folder / "models" / "003"
    assert newest_model(tmp_path / "nothing") == tmp_path / "nothing"


def test_a_project_of_an_earlier_version_has_a_newest_model_too(tmp_path):
    assert newest_model(project(tmp_path / "p", 9, 10)).name == "010"


def test_without_a_model_it_says_so(tmp_path):
    with pytest.raises(ModelError, match="has no model yet"):
        newest_model(project(tmp_path / "p"))


@pytest.mark.parametrize("text", ["../../evil", "/etc", "", "004\n005", "x" * 10_000, "٣"])
def test_latest_leads_nowhere_else(tmp_path, text):
    folder = project(tmp_path / "p", 3)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "tagger.json").write_text("{}")
    (folder / "models" / "latest").write_text(text)

    assert newest_model(folder).name == "003"


def test_links_are_followed_nowhere(tmp_path):
    folder = project(tmp_path / "p", 3)
    elsewhere = project(tmp_path / "q", 8)
    (folder / "models" / "004").symlink_to(elsewhere / "models" / "008")
    (folder / "models" / "latest").symlink_to(elsewhere / "project.toml")

    assert newest_model(folder).name == "003"
    assert not clear_model(folder / "models" / "004")
    assert (elsewhere / "models" / "008" / "tagger.json").exists()


def test_a_model_that_a_process_uses_is_not_cleared_away(tmp_path):
    folder = project(tmp_path / "p", 3)
    code = (
        "import sys; from pathlib import Path; from seqmix.data.latest_model import using_model\n"
    )
    code += (
        "with using_model(Path(sys.argv[1])) as used:\n print(used, flush=True)\n sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    ) as user:
        assert user.stdout is not None
        assert user.stdout.readline().strip().endswith("models/003")
        assert not clear_model(folder / "models" / "003")
        user.communicate("")
    assert clear_model(folder / "models" / "003")
    assert not (folder / "models" / "003").exists()


def test_a_model_cleared_away_while_it_is_opened_is_followed_by_the_next(tmp_path, monkeypatch):
    folder = project(tmp_path / "p", 3)
    name_newest(folder / "models", "003")
    actual = newest_model(folder)
    model(folder, 4)
    answers = iter([actual])

    def first_the_old(path):
        return next(answers, None) or newest_model(path)

    clear_model(actual)
    name_newest(folder / "models", "004")
    monkeypatch.setattr("seqmix.data.latest_model.newest_model", first_the_old)
    with using_model(folder) as used:
        assert used.name == "004"
