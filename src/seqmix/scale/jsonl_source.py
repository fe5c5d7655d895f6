"""A source of moderate size as JSON lines, in the order and blocks of a pool on disk."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.scale.build_pool import none_left, same_id, sentence_key
from seqmix.scale.pool import worth_asking
from seqmix.scale.shards import BLOCK, Unit

SUFFIX = ".blocks.jsonl"
SENTENCES, TOKENS = 50_000, 5_000_000  # more than either goes to a pool on disk


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
        path = (folder / f"{number:05d}{SUFFIX}").absolute()
        lines = (json.dumps([sentence.id, sentence.tokens]) + "\n" for sentence in block)
        path.write_text("".join(lines), encoding="utf-8")
        units.append(Unit(str(path), number, first, 0, len(block)))
    return units, {why: n for why, n in sorted(counts.items()) if n}


def plain_block(unit: Unit) -> list[Sentence]:
    """Return the sentences of a block."""
    with Path(unit.path).open(encoding="utf-8") as file:
        return [Sentence(id, tuple(tokens)) for id, tokens in map(json.loads, file)]
