"""A pool on disk: a folder of shards with every sentence once.

pool.json      its counts, shards and digest; written last
00000.arrow    columns id, tokens, digest
building/      while it is built; a folder without pool.json is an unfinished build
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seqmix.data.files import write_text
from seqmix.data.sentence import DOCSTART, Sentence
from seqmix.errors import DataError
from seqmix.scale.shards import Unit, as_data_error, batches_in, sentences_of, shard_units

FORMAT_VERSION = 1
DESCRIPTION = "pool.json"
_KIND = "seqmix pool"


@dataclass(frozen=True)
class Shard:
    """One file of a pool."""

    file: str
    sentences: int
    bytes: int


@dataclass(frozen=True)
class PoolOnDisk:
    """A pool as pool.json describes it."""

    folder: Path
    sentences: int
    tokens: int
    longest: int  # tokens
    digest: str  # of all ids and tokens in order
    shards: tuple[Shard, ...]
    left_out: dict[str, int] = field(default_factory=dict)  # how many, by reason

    @property
    def bytes(self) -> int:
        """The size of its shards on disk."""
        return sum(shard.bytes for shard in self.shards)

    def units(self) -> Iterator[Unit]:
        """Yield its blocks in order."""
        for shard in self.shards:
            yield from shard_units((self.folder / shard.file).absolute(), shard.sentences)

    def __iter__(self) -> Iterator[Sentence]:
        for shard in self.shards:
            path = self.folder / shard.file
            for batch in batches_in(path):
                with as_data_error(path):
                    sentences = sentences_of(batch)
                yield from sentences


def is_pool(folder: Path) -> bool:
    """Return whether the folder holds a finished pool."""
    return (folder / DESCRIPTION).is_file()


def open_pool(folder: Path) -> PoolOnDisk:
    """Open a finished pool after checking that all of its files are there."""
    try:
        description: dict[str, Any] = dict(
            json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        )
    except FileNotFoundError:
        raise DataError(
            f"expected a pool, which has a {DESCRIPTION}; "
            "build one with seqmix rank TEXT --pool FOLDER",
            folder,
        ) from None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise DataError(
            f"expected a readable {DESCRIPTION} ({error}); build the pool again", folder
        ) from error
    kind, version = description.pop("kind", None), description.pop("format_version", None)
    if (kind, version) != (_KIND, FORMAT_VERSION):
        raise DataError(
            f"expected a pool of format {FORMAT_VERSION}, which this version of seqmix reads",
            folder,
            text=f"{kind} {version}",
        )
    try:
        pool = PoolOnDisk(
            folder,
            **{**description, "shards": tuple(Shard(**shard) for shard in description["shards"])},
        )
    except (KeyError, TypeError) as error:
        raise DataError(
            f"expected a readable {DESCRIPTION} ({error}); build the pool again", folder
        ) from error
    for shard in pool.shards:
        path = folder / shard.file
        size = path.stat().st_size if path.is_file() else None
        if size != shard.bytes:
            actual = "but it is not there" if size is None else f"but it has {size}"
            raise DataError(
                f"expected a shard of {shard.bytes} bytes, {actual}; "
                "copy it again, or build the pool again",
                path,
            )
    return pool


def describe(pool: PoolOnDisk) -> None:
    """Write pool.json, which finishes the pool."""
    description = {name: value for name, value in asdict(pool).items() if name != "folder"}
    write_text(
        pool.folder / DESCRIPTION,
        json.dumps({"format_version": FORMAT_VERSION, "kind": _KIND, **description}, indent=1)
        + "\n",
    )


def worth_asking(sentence: Sentence) -> bool:
    """Return whether a sentence can be labeled: it has tokens and is not a -DOCSTART-."""
    return bool(sentence.tokens) and sentence.tokens[0] != DOCSTART
