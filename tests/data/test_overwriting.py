from pathlib import Path

import pytest

from seqmix.data.files import replacing
from seqmix.data.overwriting import FolderKind, refuse_source
from seqmix.errors import DataError

TAGGER = FolderKind("a tagger", ("tagger.json",), ("*.safetensors", "deep/*.json"))


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


@pytest.mark.parametrize(
    "names",
    [(), ("tagger.json",), ("tagger.json", "model.safetensors", "deep/a.json")],
    ids=len,
)
def test_a_folder_of_the_kind_and_an_empty_one_are_replaced(tmp_path, names):
    (tmp_path / "out").mkdir()
    put(tmp_path / "out", *names)

    with replacing(tmp_path / "out", TAGGER) as beside:
        put(beside, "tagger.json")

    assert [path.name for path in (tmp_path / "out").iterdir()] == ["tagger.json"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["project.toml", "store.sqlite"], "project.toml|store.sqlite"),
        (["tagger.json", "notes.txt"], "notes.txt"),
        (["tagger.json", ".git/config"], ".git/config"),
        (["tagger.json", "deep/a.txt"], "deep/a.txt"),
        (["model.safetensors"], "model.safetensors"),
        (["tagger.json", "old/model.safetensors"], "old/model.safetensors"),
    ],
)
def test_any_other_folder_is_refused_and_kept(tmp_path, names, found):
    put(tmp_path / "out", *names)

    with (
        pytest.raises(DataError, match=rf"than a tagger's; name a new .* found '({found})'"),
        replacing(tmp_path / "out", TAGGER),
    ):
        pytest.fail("the block must not begin")

    assert all((tmp_path / "out" / name).read_text() == name for name in names)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_link_in_a_folder_is_not_ours(tmp_path):
    put(tmp_path, "mine/a.json")
    put(tmp_path / "out", "tagger.json")
    (tmp_path / "out" / "deep").symlink_to(tmp_path / "mine")

    with pytest.raises(DataError, match="'deep'"):
        TAGGER.refuse_other(tmp_path / "out")


@pytest.mark.parametrize("out", ["read", "read/new", "."])
def test_what_is_read_is_not_written_over(tmp_path, out, monkeypatch):
    put(tmp_path, "read/a.txt")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(DataError, match="cannot write here, since read is read"):
        refuse_source(Path(out), "gazette:train", None, "read")


def test_a_place_beside_what_is_read_is_fine(tmp_path):
    put(tmp_path, "a.txt")

    refuse_source(tmp_path / "b.txt", tmp_path / "a.txt")
    refuse_source(tmp_path / "gazette", "gazette:train")
