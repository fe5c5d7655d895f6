"""What can be ranked: a pool on disk, Parquet files, or any file or folder in a known format."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from seqmix.data import formats
from seqmix.data.samples import is_sample, sample
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.scale.build_pool import none_left, same_id, sentence_key
from seqmix.scale.parquet import SUFFIX, parquet_blocks, parquet_units
from seqmix.scale.pool import is_pool, open_pool, worth_asking
from seqmix.scale.shards import BLOCK, Unit, shard_block

BLOCKS = ".blocks.jsonl"
SENTENCES, TOKENS = 50_000, 5_000_000  # more than either goes to a pool on disk


def read_source(name: str, format: str | None, options: formats.Options) -> Iterator[Sentence]:
    """Yield the sentences of a sample, a file, a folder of files or a pool on disk."""
    path = Path(name)
    if is_sample(name) and not path.exists():
        yield from sample(name)
    elif is_pool(path):
        yield from open_pool(path)
    elif path.suffix == SUFFIX and format is None:
        for unit in parquet_units(path):
            for block in parquet_blocks(unit):
                yield from block
    elif (
        format is None
        and path.is_dir()
        and not any(kind.folder and kind.folder(path) for kind in formats.FORMATS.values())
    ):
        for file in _files(path):
            yield from read_source(str(file), None, options)
    else:
        yield from formats.read(path, format, options)


def units_in_place(path: Path) -> list[Unit] | None:
    """Return the units of a pool or of Parquet files; None for what must be read from its start."""
    if is_pool(path):
        return list(open_pool(path).units())
    files = _files(path) if path.is_dir() else [path]
    if any(file.suffix != SUFFIX for file in files):
        return None
    return [unit for file in files for unit in parquet_units(file.absolute())]


def fingerprint(name: str) -> str:
    """Return what identifies a source: a pool's digest and place, or names, sizes and times."""
    path = Path(name)
    if is_sample(name) and not path.exists():
        return name
    if is_pool(path):
        return f"{open_pool(path).digest} in {path.absolute()}"
    if not path.exists():
        raise DataError("there is no such file or folder", path)
    about = [
        (str(file.absolute()), file.stat().st_size, file.stat().st_mtime_ns)
        for file in (_files(path) if path.is_dir() else [path])
    ]
    return blake2b(repr(about).encode(), digest_size=16).hexdigest()


def blocks(unit: Unit) -> Iterator[list[Sentence]]:
    """Yield the sentences of a unit that can be labeled, in blocks that are always the same."""
    if unit.path.endswith(SUFFIX):
        read = parquet_blocks(unit)
    elif unit.path.endswith(BLOCKS):
        read = iter([plain_block(unit)])
    else:
        read = iter([shard_block(unit)])
    for block in read:
        if kept := [sentence for sentence in block if worth_asking(sentence)]:
            yield kept


def _files(folder: Path) -> list[Path]:
    """Return the files in a folder, ordered by name."""
    hidden = (".", "_")  # how Spark and others mark what is not data
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(hidden) for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise DataError("expected a folder with files in it", folder)
    return files


def held(sentences: Iterable[Sentence]) -> tuple[list[Sentence], Iterable[Sentence]]:
    """Return all sentences in memory, or none and an iterator over all if there are too many."""
    source, kept, tokens = iter(sentences), list[Sentence](), 0
    for sentence in source:
        kept.append(sentence)
        tokens += len(sentence)
        if len(kept) > SENTENCES or tokens > TOKENS:
            return [], chain(kept, source)
    return kept, ()


def write_blocks(sentences: Sequence[Sentence], folder: Path) -> tuple[list[Unit], dict[str, int]]:
    """Write every sentence once, by its lowest id, in the order of digests.

    Return the units, and how many sentences were left out by reason.
    """
    counts = Counter[str]()
    unique: dict[bytes, Sentence] = {}
    for sentence in sentences:
        if not worth_asking(sentence):
            counts["-DOCSTART-" if sentence.tokens else "empty"] += 1
            continue
        key = sentence_key(sentence)
        counts["repeated"] += key in unique
        unique[key] = min(unique.get(key, sentence), sentence, key=lambda sentence: sentence.id)
    if not unique:
        raise DataError(none_left(counts))
    names: dict[str, Sentence] = {}
    for _, sentence in sorted(unique.items()):
        if sentence.id in names:
            raise same_id(names[sentence.id], sentence)
        names[sentence.id] = sentence
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    ordered, units = list(names.values()), []
    for number, first in enumerate(range(0, len(ordered), BLOCK)):
        block = ordered[first : first + BLOCK]
        path = (folder / f"{number:05d}{BLOCKS}").absolute()
        lines = (json.dumps([sentence.id, sentence.tokens]) + "\n" for sentence in block)
        path.write_text("".join(lines), encoding="utf-8")
        units.append(Unit(str(path), number, first, 0, len(block)))
    return units, {why: n for why, n in sorted(counts.items()) if n}


def plain_block(unit: Unit) -> list[Sentence]:
    """Return the sentences of a block."""
    with Path(unit.path).open(encoding="utf-8") as file:
        return [Sentence(id, tuple(tokens)) for id, tokens in map(json.loads, file)]
