"""Hugging Face datasets saved with save_to_disk.

They have the columns tokens and ner_tags (or tags, or pos_tags).
Integer tags are decoded with the dataset's names; -1 is a missing row, as is usual in datasets.
Nothing is ever downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seqmix.data.files import replacing
from seqmix.data.formats.base import Format, Options, at, visible
from seqmix.data.formats.jsonl_tokens import TAG_KEYS
from seqmix.data.overwriting import FolderKind
from seqmix.data.sentence import Row, Sentence
from seqmix.data.tagset import TagSet
from seqmix.data.text import checked_offsets
from seqmix.errors import DataError, MissingExtraError, TagError
from seqmix.extras import import_extra

_NO_TAG = -1
_FOLDER = FolderKind("a dataset", ("dataset_info.json", "state.json"), ("*.arrow",))


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per row; one without an id is `folder:number`."""
    datasets = _datasets()
    if (path / "dataset_dict.json").is_file():
        parts = sorted(file.parent.name for file in path.glob("*/dataset_info.json"))
        raise DataError(
            f"this folder has several splits; name one of its subfolders: {', '.join(parts)}", path
        )
    with _as_data_error(path):
        _check_files(path)
        data = datasets.load_from_disk(str(path))
    yield from sentences_of(data, path, options)


def sentences_of(data: Any, path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per row of an open dataset; `path` names it in errors and ids."""
    data, names, key = _tagged(_datasets(), data, path)
    for number, row in enumerate(_rows(data, path), 1):
        with at(path, None, f"row {number}"):
            yield _sentence(row, key, names, f"{path.name}:{number}", options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write a folder for load_from_disk.

    The tag names must be known before the first row, so sentences pass through a file.
    """
    datasets = _datasets()
    with replacing(path, _FOLDER) as beside, TemporaryDirectory(dir=beside) as work:
        tags: set[str] = set()
        with (Path(work) / "rows.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for sentence in sentences:
                tags.update(row for row in sentence.tags if isinstance(row, str))
                file.write(json.dumps(_record(sentence)) + "\n")
        with _quiet(datasets):
            data = _dataset(datasets, Path(work), TagSet.ordered(tags).tags if tags else ())
            # By default no file is written for no rows.
            data.save_to_disk(str(beside), num_shards=None if len(data) else 1)


def dataset_of(sentences: Iterable[Sentence]) -> Any:
    """Return sentences as a dataset in memory: the inverse of `sentences_of`."""
    datasets, sentences = _datasets(), list(sentences)
    tags = {row for sentence in sentences for row in sentence.tags if isinstance(row, str)}
    names = TagSet.ordered(tags).tags if tags else ()
    ids = {name: number for number, name in enumerate(names)}
    records = [_record(sentence) for sentence in sentences]
    for record in records:
        if record["ner_tags"] is not None:
            record["ner_tags"] = [ids.get(tag, _NO_TAG) for tag in record["ner_tags"]]
    features = _features(datasets, names)
    columns = {name: [record[name] for record in records] for name in features}
    return datasets.Dataset.from_dict(columns, features=features)


def _datasets() -> Any:
    return import_extra("datasets", "hf", "the format hf")


def _tagged(datasets: Any, data: Any, path: Path) -> tuple[Any, list[str] | None, str | None]:
    """Return the dataset with its useful columns, the names of integer tags, and the tag column."""
    features = data.features
    if "tokens" not in features:
        raise DataError('expected a column "tokens"', path, None, ", ".join(features))
    key = next((key for key in TAG_KEYS if key in features), None)
    feature = getattr(features[key], "feature", None) if key else None
    names = feature.names if isinstance(feature, datasets.ClassLabel) else None
    columns = [c for c in ("id", "tokens", key, "text", "offsets") if c in features]
    return data.select_columns(columns), names, key


def _check_files(path: Path) -> None:
    """Refuse a dataset that names files outside its folder: the library would open them."""
    state = json.loads((path / "state.json").read_text(encoding="utf-8"))
    for name in (str(file["filename"]) for file in state["_data_files"]):
        if name != Path(name).name or name == ".." or "\\" in name:
            raise DataError(
                "expected the files of a dataset to be inside its own folder",
                path / "state.json",
                None,
                name,
            )


def _rows(data: Any, path: Path) -> Iterator[dict[str, Any]]:
    with _as_data_error(path):
        yield from data


def _sentence(
    row: dict[str, Any], key: str | None, names: list[str] | None, id: str, options: Options
) -> Sentence:
    tokens, tags = row["tokens"], row.get(key or "")
    text, offsets = row.get("text"), row.get("offsets")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise DataError('expected "tokens" to be a list of strings', text=str(tokens))
    if tags is not None and not isinstance(tags, list):
        raise DataError(f'expected "{key}" to be a list, one entry per token', text=str(tags))
    rows = tuple(_row(tag, names) for tag in tags or ())
    id = str(row["id"]) if row.get("id") is not None else id
    if isinstance(text, str) and offsets is not None:
        return Sentence(id, visible(tokens, options), rows, text, checked_offsets(offsets, text))
    return Sentence(id, visible(tokens, options), rows)


def _row(tag: Any, names: list[str] | None) -> Row:
    if tag is None or tag == _NO_TAG:
        return None
    if isinstance(tag, int) and names is not None and 0 <= tag < len(names):
        tag = names[tag]
    if not isinstance(tag, str) or not tag:
        raise TagError(
            "expected a tag to be a string, or an integer that the dataset's ClassLabel names",
            text=repr(tag),
        )
    return tag


def _record(sentence: Sentence) -> dict[str, Any]:
    tags = [_NO_TAG if row is None else row for row in sentence.tags] if sentence.labeled else None
    offsets = None if sentence.offsets is None else [list(pair) for pair in sentence.offsets]
    return {
        "id": sentence.id,
        "tokens": list(sentence.tokens),
        "ner_tags": tags,
        "text": sentence.text,
        "offsets": offsets,
    }


def _features(datasets: Any, names: tuple[str, ...]) -> Any:
    string, listed = datasets.Value("string"), getattr(datasets, "List", datasets.Sequence)
    label = datasets.ClassLabel(names=list(names)) if names else string
    columns = {"id": string, "tokens": listed(string), "ner_tags": listed(label), "text": string}
    return datasets.Features({**columns, "offsets": listed(listed(datasets.Value("int64")))})


def _dataset(datasets: Any, work: Path, names: tuple[str, ...]) -> Any:
    features = _features(datasets, names)
    file = work / "rows.jsonl"
    if not file.stat().st_size:  # from_generator refuses an empty generator
        return datasets.Dataset.from_dict({name: [] for name in features}, features=features)
    return datasets.Dataset.from_generator(
        _json_rows, features=features, gen_kwargs={"path": str(file)}, cache_dir=str(work)
    )


def _json_rows(path: str) -> Iterator[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


@contextmanager
def _as_data_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (DataError, MissingExtraError):
        raise
    except Exception as error:  # pyarrow and datasets each have their own errors
        raise DataError(
            f"expected a dataset saved with save_to_disk ({type(error).__name__})",
            path,
            None,
            str(error),
        ) from error


@contextmanager
def _quiet(datasets: Any) -> Iterator[None]:
    """Hide progress bars while a file is written."""
    enabled = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if enabled:
            datasets.enable_progress_bars()


def _is_folder(path: Path) -> bool:
    return any((path / name).is_file() for name in ("dataset_dict.json", "state.json"))


FORMAT = Format(
    "hf",
    read,
    write,
    folder=_is_folder,
    holds=frozenset({"tokens", "tags", "missing", "id", "text"}),
)
