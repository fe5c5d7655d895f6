"""Sentences on disk in blocks that can be read from the middle: uncompressed Arrow IPC files.

subtle: the last bits of a score depend on the batch it was computed in, so a block, which is
batched and scored together, must be the same for every reader and is never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from seqmix.data.files import sync
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, first_line
from seqmix.extras import import_extra
from seqmix.scale.dedupe import key_of

BLOCK = 2048  # sentences
Batch = Any  # a pyarrow.RecordBatch with the columns id, tokens and digest


@dataclass(frozen=True)
class Unit:
    """The work of one job: rows [start, stop) of a group (record batch or row group) of a file."""

    path: str
    group: int
    first: int  # the row of the file at which the group starts
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def key(self) -> str:
        """Its name in a journal."""
        return f"{self.path}:{self.first + self.start}"


class ShardWriter:
    """Writes blocks to `00000.arrow`, `00001.arrow` …, about `size` sentences per file."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self.written: list[tuple[str, int]] = []  # file and sentences
        self._file: Any = None

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def write(self, block: Batch) -> None:
        """Write a block; only the last may be smaller than the others."""
        if self._file is None:
            self.written.append((f"{len(self.written):05d}.arrow", 0))
            self._file = arrow().ipc.new_file(str(self.folder / self.written[-1][0]), block.schema)
        self._file.write_batch(block)
        name, rows = self.written[-1]
        self.written[-1] = name, rows + block.num_rows
        if self.written[-1][1] >= self.size:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            sync(self.folder / self.written[-1][0])
            self._file = None


def batch_of(
    ids: Sequence[str], tokens: Sequence[Sequence[str]], digests: Sequence[bytes]
) -> Batch:
    """Return the columns as an Arrow batch."""
    pa = arrow()
    schema = pa.schema(
        [("id", pa.string()), ("tokens", pa.list_(pa.string())), ("digest", pa.binary(16))]
    )
    return pa.record_batch(
        [
            pa.array(column, field.type)
            for column, field in zip((ids, tokens, digests), schema, strict=True)
        ],
        schema,
    )


def sentences_of(batch: Batch) -> list[Sentence]:
    """Return the sentences of a batch after checking their digests."""
    ids, tokens, digests = (batch.column(name).to_pylist() for name in ("id", "tokens", "digest"))
    for id, words, digest in zip(ids, tokens, digests, strict=True):
        if key_of(words) != digest:
            raise ValueError(f"the tokens of {id!r} are not those that were written")
    return [Sentence(id, tuple(words)) for id, words in zip(ids, tokens, strict=True)]


def whole_blocks(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the same rows in blocks."""
    held: list[Batch] = []
    lack = BLOCK
    for batch in batches:
        start = 0
        while batch.num_rows - start >= lack:
            yield joined([*held, batch.slice(start, lack)])
            held, start, lack = [], start + lack, BLOCK
        if start < batch.num_rows:
            held.append(batch.slice(start))
            lack -= batch.num_rows - start
    if held:
        yield joined(held)


def joined(batches: Sequence[Batch]) -> Batch:
    """Join batches."""
    return batches[0] if len(batches) == 1 else arrow().concat_batches(batches)


def batches_in(path: Path) -> Iterator[Batch]:
    """Yield the blocks of a shard; it is not mapped, since its pages would count as our memory."""
    pa = arrow()
    with as_data_error(path), pa.OSFile(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            yield sound(reader.get_batch(number))


def shard_units(path: Path, rows: int) -> Iterator[Unit]:
    """Yield one unit per block."""
    for group, first in enumerate(range(0, rows, BLOCK)):
        yield Unit(str(path), group, first, 0, min(BLOCK, rows - first))


def shard_block(unit: Unit) -> list[Sentence]:
    """Return the sentences of a block, read from the mapped file."""
    pa, path = arrow(), Path(unit.path)
    with as_data_error(path), pa.memory_map(str(path)) as source:
        return sentences_of(sound(pa.ipc.open_file(source).get_batch(unit.group)))


def sound(batch: Batch) -> Batch:
    """Check a batch: pyarrow follows the offsets of a damaged file and crashes the process."""
    batch.validate(full=True)
    return batch


def arrow() -> Any:
    """Import pyarrow, or say how to install it."""
    return import_extra("pyarrow", "scale", "a pool on disk")


@contextmanager
def as_data_error(path: Path) -> Iterator[None]:
    """Report a missing or broken file as a DataError."""
    try:
        yield
    except (OSError, ValueError, arrow().ArrowException) as error:
        raise DataError(
            f"cannot read this shard ({first_line(error)}); write it again, or remove it", path
        ) from error
