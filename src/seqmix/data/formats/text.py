"""Raw text, one unlabeled sentence per line: what a pool often starts as; for reading only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seqmix.data.files import lines
from seqmix.data.formats.base import Format, Options
from seqmix.data.sentence import Sentence


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence for each line that is not empty, as `stem:line`."""
    for number, text in lines(path):
        if text.strip():
            yield Sentence.from_text(text, f"{path.stem}:{number}", tokenizer=options.tokenizer)


FORMAT = Format("text", read, None, holds=frozenset({"text"}))
