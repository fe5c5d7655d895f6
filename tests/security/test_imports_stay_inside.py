"""Data folders as a stranger might send them: no file outside is read, however it is named."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zipfile
import zlib
from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

SECRET = "the-secret-of-this-machine"
SENTENCES = [Sentence("d:1", ("Lena", "left"), ("B-PER", "O"))]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "private" / "secret.txt"
    path.parent.mkdir()
    path.write_text(SECRET + "\n")
    return path


@pytest.mark.parametrize("name", ["a.txt", "deep/b.txt", "a.ann"])
def test_a_link_in_a_brat_folder_that_leads_out_is_refused_by_name(
    name: str, secret: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "brat"
    (folder / "deep").mkdir(parents=True)
    (folder / "own.txt").write_text("Lena left\n")
    (folder / "own.ann").write_text("T1\tPER 0 4\tLena\n")
    (folder / name).symlink_to(secret)

    with pytest.raises(DataError, match="leads out of its folder") as refused:
        list(formats.read(folder))
    assert Path(name).name in str(refused.value) and SECRET not in str(refused.value)


def test_a_linked_folder_that_leads_out_is_refused_and_one_inside_is_not(
    secret: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "brat"
    formats.write(SENTENCES, folder, "brat")
    (folder / "again.txt").symlink_to("d.txt")
    assert len(list(formats.read(folder, "brat"))) == 2

    (folder / "more").symlink_to(secret.parent)
    with pytest.raises(DataError, match="leads out of its folder"):
        formats.read(folder, "brat")


def test_a_link_that_goes_in_circles_is_an_error_of_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "brat"
    formats.write(SENTENCES, folder, "brat")
    (folder / "round.txt").symlink_to("round.txt")

    with pytest.raises(DataError):
        list(formats.read(folder, "brat"))


def test_an_ace_folder_is_held_to_the_same(secret: Path, tmp_path: Path) -> None:
    (tmp_path / "ace").mkdir()
    (tmp_path / "ace" / "d.sgm").symlink_to(secret)

    with pytest.raises(DataError, match="leads out of its folder"):
        formats.read(tmp_path / "ace", "ace05")


@pytest.mark.parametrize(
    "name",
    [
        "../private/data.arrow",
        "/etc/passwd",
        "sub/../../private/data.arrow",
        "..\\data.arrow",
        "..",
    ],
)
def test_a_dataset_that_names_files_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="Hugging Face datasets need the extra hf")
    formats.write(SENTENCES, tmp_path / "private", "hf")
    (
        tmp_path / "private" / next(file.name for file in (tmp_path / "private").glob("*.arrow"))
    ).rename(tmp_path / "private" / "data.arrow")
    formats.write(SENTENCES, tmp_path / "sent", "hf")
    (tmp_path / "sent" / "sub").mkdir()
    state = json.loads((tmp_path / "sent" / "state.json").read_text())
    state["_data_files"] = [{"filename": name}]
    (tmp_path / "sent" / "state.json").write_text(json.dumps(state))

    with pytest.raises(DataError, match="inside its own folder"):
        list(formats.read(tmp_path / "sent", "hf"))


def test_a_dataset_with_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="Hugging Face datasets need the extra hf")
    formats.write(SENTENCES, tmp_path / "private", "hf")
    formats.write(SENTENCES, tmp_path / "sent", "hf")
    arrow = next((tmp_path / "sent").glob("*.arrow"))
    arrow.unlink()
    arrow.symlink_to(next((tmp_path / "private").glob("*.arrow")))

    with pytest.raises(DataError, match="leads out of its folder"):
        formats.read(tmp_path / "sent", "hf")


def test_label_studio_data_that_names_files_is_text_and_nothing_is_opened(
    secret: Path, tmp_path: Path
) -> None:
    tasks = [
        {"data": {"text": f"file://{secret}"}},
        {"data": {"text": f"/data/local-files/?d={secret}"}},
        {"data": {"text": "../../x"}},
    ]
    (tmp_path / "export.json").write_text(
        json.dumps([{"id": i, "annotations": [], **task} for i, task in enumerate(tasks)])
    )

    found = " ".join(
        token
        for sentence in formats.read(tmp_path / "export.json", "labelstudio")
        for token in sentence.tokens
    )

    assert "local - files" in found and SECRET not in found


def test_an_archive_is_not_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("../evil.conll", "Lena B-PER\n")
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"Lena B-PER\n"))
    for name in ("in.zip", "in.gz"):
        assert run(["convert", str(tmp_path / name), str(tmp_path / "out.conll")]) == 2
        assert "archives are not opened" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.gz", "in.zip"]


class Payload:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("wrap", [lambda raw: raw, zlib.compress])
@pytest.mark.parametrize("name", ["a.spacy", "a.jsonl", "a.conll", "a.json"])
def test_a_pickle_under_the_name_of_data_is_refused_and_not_run(
    wrap, name: str, tmp_path: Path
) -> None:
    if name == "a.spacy":
        pytest.importorskip("spacy", reason="DocBin needs the extra spacy")
    (tmp_path / name).write_bytes(wrap(pickle.dumps(Payload(tmp_path / "ran"))))

    with pytest.raises(DataError):
        list(formats.read(tmp_path / name))
    assert not (tmp_path / "ran").exists()


def test_entities_in_ace_files_read_no_file(secret: Path, tmp_path: Path) -> None:
    entity = f'<!DOCTYPE s [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    (tmp_path / "d.sgm").write_text("<DOC>\n<TEXT>Rebels attacked.\n</TEXT></DOC>")
    (tmp_path / "d.apf.xml").write_text(
        f'<?xml version="1.0"?>\n{entity}\n<s><document DOCID="d">&x;</document></s>'
    )

    with pytest.raises(DataError) as refused:
        list(formats.read(tmp_path / "d.sgm", "ace05"))
    assert SECRET not in str(refused.value)
