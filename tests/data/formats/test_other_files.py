from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.errors import DataError
from tests.support import tiny


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.conll", None), ("a.bio", "conll"), ("a.dat", "conll"), ("a.json", "labelstudio"),
     ("a.jsonl", "doccano"), ("a.conllu", None)],
)  # fmt: skip
def test_a_file_of_the_format_is_replaced(tmp_path: Path, name: str, format: str | None) -> None:
    for n in (2, 3, 0, 1):
        formats.write(tiny.toy(n), tmp_path / name, format)

    assert len(list(formats.read(tmp_path / name, format))) == 1


@pytest.mark.parametrize(
    ("name", "format", "text"),
    [
        ("project.toml", "conll", 'name = "Names"\ntags = ["PER"]\n'),
        ("raw.txt", "conll", "Lena left Oslo .\nIt rained .\n"),
        ("config.json", "labelstudio", '{\n "model_type": "bert"\n}'),
        ("tagger.jsonl", "jsonl-tokens", '{"format_version": 1}'),
        ("notes.md", "jsonl-tokens", "Notes"),
        ("a.jsonl", "conll", '{"tokens": ["Lena"]}'),
    ],
)
def test_another_file_is_kept(tmp_path: Path, name: str, format: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(DataError, match=f"is not {format}, and is kept; name another"):
        formats.write(tiny.toy(2), tmp_path / name, format)

    assert (tmp_path / name).read_text() == text
