"""What a round is measured by, and the predictions it leaves.

rounds/003/test.jsonl.gz has a line per sentence, in the order of the split:

    {"gold": [[0, 2, "PER"]], "spans": [[0, 1, "PER"]], "p": 0.91}
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqmix.data.files import replacing
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, spans
from seqmix.protocols import Tagger


def evaluate(
    tagger: Tagger, sentences: Sequence[Sentence], split: str, kept: Path
) -> dict[str, object]:
    """Return the scores of a tagger on labeled sentences, and keep what it predicted."""
    paths = [
        best[0] for best in tagger.best_paths([sentence.unlabeled() for sentence in sentences])
    ]
    predicted = [list(path.tags) for path in paths]
    gold = [[str(tag) for tag in sentence.hardened().tags] for sentence in sentences]
    records = [
        {"gold": _spans(tags), "spans": _spans(path.tags), "p": float(f"{path.probability:.4g}")}
        for tags, path in zip(gold, paths, strict=True)
    ]
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    with replacing(kept) as beside:  # without a time in it, so that one seed gives the same bytes
        beside.write_bytes(gzip.compress(lines.encode("utf-8", "surrogatepass"), mtime=0))
    return score(gold, predicted, split=split).as_dict()


def count_tokens(sentence: Sentence) -> int:
    """Return the number of tokens with a label."""
    return sum(row is not None for row in sentence.tags)


def count_spans(sentence: Sentence) -> int:
    """Return the number of labeled spans."""
    tags = [str(tag) if tag is not None else OUTSIDE for tag in sentence.hardened().tags]
    return len(spans(tags))


def _spans(tags: Sequence[str]) -> list[list[Any]]:
    return [[span.start, span.end, span.type] for span in spans(tags)]
