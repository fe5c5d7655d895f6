"""What a run reads is known again by its content."""

from __future__ import annotations

from pathlib import Path

from seqmix.app.provenance import data_digests, folder_digest
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from tests.support import tiny


def test_the_digest_of_data_is_of_its_tokens_and_tags_not_of_how_they_are_written(
    tmp_path: Path,
) -> None:
    train = tiny.toy(8)
    formats.write(train, tmp_path / "train.conll")
    again = list(formats.read(tmp_path / "train.conll"))

    def digest(sentences: list[Sentence]) -> str:
        return data_digests({"train": sentences})["train"]

    assert digest(train) == digest(again)
    assert (
        len(
            {
                digest(train),
                digest(train[:-1]),
                digest(train[::-1]),
                digest([s.unlabeled() for s in train]),
            }
        )
        == 4
    )
    joined = Sentence("a", ("a b",), ("O",)), Sentence("a", ("a", "b"), ("O", "O"))
    assert len({digest([one]) for one in joined}) == 2
    soft = [
        Sentence("a", ("a",), (dict(row),))
        for row in ((("O", 0.5), ("X", 0.5)), (("X", 0.5), ("O", 0.5)))
    ]
    assert digest(soft[:1]) == digest(soft[1:])


def test_the_digest_of_a_folder_is_of_its_files_and_their_names(tmp_path: Path) -> None:
    def folder(name: str, **files: str) -> str:
        for file, text in files.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(text)
        return folder_digest(tmp_path / name)

    assert folder("a", x="1", y="2") == folder("b", y="2", x="1", **{".hidden": "3"})
    assert (
        len(
            {
                folder("c", x="1", y="2"),
                folder("d", x="2", y="1"),
                folder("e", x="1"),
                folder("f", x="1", z="2"),
            }
        )
        == 4
    )
