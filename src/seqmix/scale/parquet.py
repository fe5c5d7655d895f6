"""Read Parquet files: columns `tokens` (lists of strings) or `text`, and `id` if there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.extras import import_extra
from seqmix.scale.shards import BLOCK, Unit, as_data_error

SUFFIX = ".parquet"
UNIT_ROWS = 16 * BLOCK  # rows per unit: row groups can be huge and are decoded from their start


def parquet_units(path: Path) -> Iterator[Unit]:
    """Yield stretches of each row group; only the footer is read."""
    with as_data_error(path), _module().ParquetFile(path) as file:
        sizes = [
            file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)
        ]
    first = 0
    for group, size in enumerate(sizes):
        for start in range(0, size, UNIT_ROWS):
            yield Unit(str(path), group, first, start, min(start + UNIT_ROWS, size))
        first += size


def parquet_blocks(unit: Unit) -> Iterator[list[Sentence]]:
    """Yield the sentences of a unit in blocks, counted from the start of the row group."""
    path = Path(unit.path)
    with as_data_error(path), _module().ParquetFile(path) as file:
        at = 0
        for batch in file.iter_batches(
            BLOCK, row_groups=[unit.group], columns=_columns(file.schema_arrow.names, path)
        ):
            if at >= unit.start:
                yield list(_sentences(batch.to_pydict(), path, unit.first + at))
            at += batch.num_rows
            if at >= unit.stop:
                return


def _columns(names: list[str], path: Path) -> list[str]:
    content = next((name for name in ("tokens", "text") if name in names), None)
    if content is None:
        raise DataError(
            'expected a column "tokens" (lists of strings) or "text"', path, None, ", ".join(names)
        )
    return [name for name in ("id", content) if name in names]


def _sentences(columns: dict[str, list[Any]], path: Path, first: int) -> Iterator[Sentence]:
    """Yield sentences; without an id, one is named by its place in the file."""
    for number, content in enumerate(columns.get("tokens", columns.get("text", ())), 1):
        name = columns["id"][number - 1] if "id" in columns else None
        id = str(name) if name is not None else f"{path.stem}:{first + number}"
        if isinstance(content, str):
            yield Sentence.from_text(content, id)
        elif content is None or (
            isinstance(content, list) and all(isinstance(token, str) for token in content)
        ):
            yield Sentence(id, tuple(content or ()))
        else:
            raise DataError(
                'expected "tokens" to be lists of strings, or "text" to be strings',
                path,
                None,
                f"row {first + number}: {content}",
            )


def _module() -> Any:
    return import_extra("pyarrow.parquet", "scale", "reading Parquet")
