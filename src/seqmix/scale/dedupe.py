"""Find repeated keys in bounded memory: they go to 256 files, each of which is sorted by itself.

A key is 128 bits of BLAKE2: two of a billion sentences share one with a chance of 10⁻²¹.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

KEY = 16  # bytes
_RECORD = np.dtype([("high", "<u8"), ("low", "<u8"), ("at", "<i8")])
HELD = 1 << 18  # records in memory before they go to their files
Places = NDArray[np.int64]


def key_of(tokens: Sequence[str]) -> bytes:
    """Return the key of tokens; it includes their lengths, or ["ab"] would equal ["a", "b"]."""
    lengths = ",".join(map(str, map(len, tokens)))
    return blake2b(f"{lengths}\n{''.join(tokens)}".encode(), digest_size=KEY).digest()


class Buckets:
    """Keys and the places at which they occur, in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._held = bytearray()
        self._met = self._stored = 0

    def add(self, key: bytes) -> None:
        """Add the next key; places are counted from 0."""
        self._held += key
        self._met += 1
        if self._met - self._stored == HELD:
            self._store()

    def __len__(self) -> int:
        return self._met

    def repeats(self) -> Iterator[tuple[Places, Places]]:
        """Yield places whose key occurred before, each with the place before it."""
        self._store()
        for file in sorted(self.folder.iterdir()):
            records = np.fromfile(file, dtype=_RECORD)
            records = records[np.lexsort((records["at"], records["low"], records["high"]))]
            again = (records["high"][1:] == records["high"][:-1]) & (
                records["low"][1:] == records["low"][:-1]
            )
            if again.any():
                yield records["at"][1:][again], records["at"][:-1][again]

    def _store(self) -> None:
        if not self._held:
            return
        keys = np.frombuffer(self._held, dtype=">u8").reshape(-1, 2)
        records = np.empty(len(keys), dtype=_RECORD)
        records["high"], records["low"] = keys[:, 0], keys[:, 1]
        records["at"] = np.arange(self._stored, self._met)
        self._held, self._stored = bytearray(), self._met
        bucket = (records["high"] >> np.uint64(56)).astype(np.uint8)
        records = records[np.argsort(bucket, kind="stable")]
        ends = np.cumsum(np.bincount(bucket, minlength=256))
        for number, part in enumerate(np.split(records, ends[:-1])):
            if len(part):
                with (self.folder / f"{number:02x}").open("ab") as file:
                    file.write(part.tobytes())
