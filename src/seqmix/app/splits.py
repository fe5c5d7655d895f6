"""train, dev and test of a data folder, read without loading a model library."""

from __future__ import annotations

from pathlib import Path

from seqmix.app.config import Config
from seqmix.data import formats
from seqmix.data.samples import is_sample, sample
from seqmix.data.sentence import Sentence, unique_ids
from seqmix.errors import DataError

_NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}


def read_splits(folder: str, config: Config) -> dict[str, list[Sentence]]:
    """Return train, dev and test of a data folder in any format read, or of a sample."""
    if is_sample(folder) and not Path(folder).exists():
        return {name: sample(f"{folder}:{name}") for name in _NAMES}
    place = Path(folder)
    if not place.is_dir():
        raise DataError(
            "expected a folder with files named train, dev and test, in any format read", place
        )
    columns = config.data
    options = formats.Options(tag_column=columns.tag_column, token_column=columns.token_column)
    splits = {}
    for name, stems in _NAMES.items():
        files = [path for path in sorted(place.iterdir()) if stems_of(path) & set(stems)]
        if not files:
            raise DataError(
                f"there is no file for {name} here: it should be named {' or '.join(stems)}, "
                f"such as {stems[0]}.txt",
                place,
            )
        sentences = unique_ids(formats.read(files[0], None, options))
        splits[name] = [sentence for sentence in sentences if sentence.labeled and len(sentence)]
    return splits


def stems_of(path: Path) -> set[str]:
    """Return the words of a file name: `wnut17.dev.conll` -> {"wnut17", "dev", "conll"}."""
    return set(path.name.lower().replace("-", ".").replace("_", ".").split("."))
