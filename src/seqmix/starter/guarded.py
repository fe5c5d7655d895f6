"""What keeps a stranger's tokenizer from ending the process, or from filling its memory."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqmix.errors import ModelError

GROWTH = 200  # times as long as it was: what the steps of a tokenizer may make of a text
PROBE = "".join(map(chr, range(32, 127)))
_LENGTHENS = {
    "Precompiled": 20,
    "NFKC": 3,
    "NFKD": 3,
    "NFC": 2,
    "NFD": 2,
    "BertNormalizer": 3,
    "ByteLevel": 2,
}  # others: not at all
_PARTS = ("normalizers", "pretokenizers")


@contextmanager
def tokenizing() -> Iterator[None]:
    """A panic inside the tokenizers library as one line. subtle: it is no Exception, so nobody else would catch it."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        why = (str(error).splitlines() or ["it gave up"])[0]
        raise ModelError(f"the model's tokenizer cannot cut this text: {why[:200]}") from error


def refuse_growth(folder: Path) -> None:
    """Refuse a tokenizer.json whose steps multiply the length of a text: ten that make ten letters of one make 10 GB of it.

    Looked at before anything is cut: adding a token to a tokenizer already runs its steps.
    """
    path = folder / "tokenizer.json"
    if path.is_file():
        described = json.loads(path.read_bytes())
        parts = (
            [described.get(key) for key in ("normalizer", "pre_tokenizer")]
            if isinstance(described, dict)
            else []
        )
        if (times := math.prod(_times(step) for part in parts for step in _steps(part))) > GROWTH:
            raise ModelError(
                f"{path} makes a text up to {times:.3g} times as long; at most {GROWTH} times is taken"
            )


def refuse_grown(text: str) -> None:
    """Refuse a tokenizer that makes this much of the probe: a table of characters inside it can say anything."""
    if len(text) > GROWTH * len(PROBE):
        raise ModelError(
            f"the model's tokenizer makes {len(text)} characters of {len(PROBE)}; at most {GROWTH} times as many are taken"
        )


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """The single steps of a normalizer or pre-tokenizer, those inside sequences included."""
    waiting = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += [
                step for key in _PARTS if isinstance(one.get(key), list) for step in one[key]
            ]


def _times(step: dict[str, Any]) -> float:
    """How many times as long a step can make a text."""
    if step.get("type") != "Replace":
        return _LENGTHENS.get(str(step.get("type")), 1)
    pattern, content = step.get("pattern"), str(step.get("content", ""))
    literal = pattern.get("String") if isinstance(pattern, dict) else None
    if isinstance(literal, str) and literal:
        return max(1.0, len(content) / len(literal))
    return 1 + len(content)  # an expression can match where nothing stands
