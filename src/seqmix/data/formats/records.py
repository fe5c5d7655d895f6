"""JSON records of files of any size: one per line, or the elements of one large array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from seqmix.data.files import lines, replacing
from seqmix.errors import DataError

CHUNK = 1 << 20
_SPACE = " \t\r\n"
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_DEPTH = "nested too deep"
MAX_DEPTH = 100  # levels: far fewer than Python's recursion takes, and many more than we write


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield line number, object and the line itself; empty lines are skipped."""
    for number, text in lines(path):
        if text.strip():
            yield number, _object(text, path, number), text


def json_array(path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the elements of a JSON array like `json_lines`, without reading the whole file."""
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for line, record, text in _elements(file, path):
                yield line, _whole(record, text, path, line), text
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error
    except UnicodeDecodeError as error:
        shown = error.object[max(0, error.start - 40) : error.end + 40].decode(
            "utf-8", "backslashreplace"
        )
        raise DataError("expected UTF-8 text", path, None, shown) from error


def json_records(path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the records of either kind of file, by its first character."""
    try:
        with path.open("rb") as file:
            start = file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error
    return json_lines(path) if start[:1] == b"{" else json_array(path)


def write_records(records: Iterable[dict[str, Any]], path: Path) -> None:
    """Write an array, or one record per line if the name ends in .jsonl."""
    (write_lines if path.name.lower().endswith(".jsonl") else write_array)(records, path)


def write_lines(records: Iterable[dict[str, Any]], path: Path) -> None:
    """Write one object per line, completely or not at all."""
    with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def write_array(records: Iterable[dict[str, Any]], path: Path) -> None:
    """Write one JSON array, an element per line, completely or not at all."""
    with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        between = "[\n"
        for record in records:
            file.write(between + json.dumps(record, ensure_ascii=False))
            between = ",\n"
        file.write("[]\n" if between == "[\n" else "\n]\n")


def is_deep(value: Any) -> bool:
    """Whether lists and objects are nested more than 100 levels."""
    layer = [value]
    for _ in range(MAX_DEPTH + 1):
        layer = [
            child
            for parent in layer
            for child in _children(parent)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return False
    return True


def _children(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def identify(record: dict[str, Any], path: Path, number: int) -> str:
    """Return the record's id, or an id made from its place."""
    return str(record["id"]) if record.get("id") is not None else f"{path.stem}:{number}"


def _elements(file: IO[str], path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield elements, decoded from a buffer that is refilled when an element does not end in it."""
    decoder = json.JSONDecoder()
    buffer, at, line = _array_start(file, path)
    while buffer:
        between = _BETWEEN.match(buffer, at)
        start, at = at, between.end() if between else at
        line += buffer.count("\n", start, at)
        if buffer[at : at + 1] == "]":
            _check_end(buffer[at + 1 :] + file.read(CHUNK), path, line)
            return
        try:
            record, end = decoder.raw_decode(buffer, at)
        except RecursionError as error:
            raise DataError(
                f"expected JSON objects ({_DEPTH})", path, line, buffer[at : at + 80]
            ) from error
        except ValueError as error:
            size = max(CHUNK, len(buffer) - at)  # grows, so that a huge element takes linear time
            more = "" if _broken(error, len(buffer)) else file.read(size)
            if not more:
                raise DataError(
                    "expected JSON objects up to a closing ]", path, line, buffer[at : at + 80]
                ) from error
            buffer, at = buffer[at:] + more, 0
            continue
        if not isinstance(record, dict):
            raise DataError(
                "expected each element of the array to be an object",
                path,
                line,
                buffer[at : at + 80],
            )
        _refuse_deep(record, buffer[at:end], path, line)
        yield line, record, buffer[at:end]
        line += buffer.count("\n", at, end)
        at = end


def _array_start(file: IO[str], path: Path) -> tuple[str, int, int]:
    """Return a first buffer (empty for an empty file), where the array starts, and its line."""
    buffer, line = file.read(CHUNK), 1
    while buffer and not buffer.strip(_SPACE):
        line += buffer.count("\n")
        buffer = file.read(CHUNK)
    at = len(buffer) - len(buffer.lstrip(_SPACE))
    line += buffer.count("\n", 0, at)
    if buffer and buffer[at] != "[":
        raise DataError("expected a JSON array, [ first", path, line, buffer[at : at + 80])
    return buffer, at + 1, line


def _broken(error: ValueError, end: int) -> bool:
    """Whether more text could not help: text is cut only at the buffer's end or in a string."""
    return not isinstance(error, json.JSONDecodeError) or (
        error.pos < end - 16 and not error.msg.startswith("Unterminated")
    )


def _check_end(rest: str, path: Path, line: int) -> None:
    if rest.strip():
        raise DataError("expected nothing after the closing ]", path, line, rest.strip()[:80])


def _object(text: str, path: Path, line: int) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = _DEPTH if isinstance(error, RecursionError) else getattr(error, "msg", str(error))
        raise DataError(f"expected one JSON object per line ({why})", path, line, text) from error
    if not isinstance(record, dict):
        raise DataError("expected one JSON object per line", path, line, text)
    _refuse_deep(record, text, path, line)
    return _whole(record, text, path, line)


def _refuse_deep(record: dict[str, Any], text: str, path: Path, line: int) -> None:
    """Refuse a record that could just be read, but would be too deep to be written or shown."""
    if text.count("[") + text.count("{") > MAX_DEPTH and is_deep(record):
        raise DataError(
            f"expected JSON objects of at most {MAX_DEPTH} levels ({_DEPTH})", path, line, text[:80]
        )


def _whole(record: dict[str, Any], text: str, path: Path, line: int) -> dict[str, Any]:
    r"""Return the record; half a character (\ud83d), which could not be written, is an error."""
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise DataError(
                "expected whole characters, found half of a surrogate pair", path, line, text
            ) from error
    return record
