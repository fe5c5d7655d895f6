"""Guards against a tokenizer that ends the process or fills its memory."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from seqmix.errors import ModelError, first_line

MAX_LETTERS = 1000  # of a word that a tokenizer sees: WordPiece takes their third power in time
GROWTH = 200  # how many times as long the steps of a tokenizer may make a text
PROBE = "".join(map(chr, range(32, 127)))
_GROWTH_OF = {
    "Precompiled": 20,
    "NFKC": 3,
    "NFKD": 3,
    "NFC": 2,
    "NFD": 2,
    "BertNormalizer": 3,
    "ByteLevel": 2,
}  # other steps do not lengthen a text
_SEQUENCES = ("normalizers", "pretokenizers")


@contextmanager
def tokenizing() -> Iterator[None]:
    """Turn a panic inside the tokenizers library, which is not an Exception, into a ModelError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ModelError(
            f"the model's tokenizer cannot cut this text: {first_line(error, 200)}"
        ) from error


def refuse_growth(folder: Path) -> None:
    """Refuse a tokenizer.json whose steps multiply the length of a text.

    Ten steps that turn one letter into ten make 10 GB of it.
    This must come before the tokenizer is loaded, since adding a token runs its steps.
    """
    path = folder / "tokenizer.json"
    if path.is_file():
        refuse_growing(path.read_bytes(), path)


def refuse_growing(tokenizer: str | bytes, source: Path) -> None:
    """Refuse the content of such a file, or of one that a model holds."""
    content = json.loads(tokenizer)
    keys = ("normalizer", "pre_tokenizer") if isinstance(content, dict) else ()
    growth = math.prod(_growth(step) for key in keys for step in _steps(content.get(key)))
    if growth > GROWTH:
        raise ModelError(
            f"{source} makes a text up to {growth:.3g} times as long; "
            f"at most {GROWTH} times is accepted"
        )


def refuse_grown(text: str) -> None:
    """Refuse a tokenizer that made this of the probe: a character table inside can do anything."""
    if len(text) > GROWTH * len(PROBE):
        raise ModelError(
            f"the model's tokenizer makes {len(text)} characters of {len(PROBE)}; "
            f"at most {GROWTH} times as many are accepted"
        )


def plain_backend(tokenizer: Any) -> Any:
    """Return a copy of the tokenizer's backend that neither pads nor truncates."""
    plain = deepcopy(tokenizer.backend_tokenizer)
    plain.no_padding()
    plain.no_truncation()
    if plain.normalizer is not None:
        with tokenizing():
            refuse_grown(plain.normalizer.normalize_str(PROBE))
    return plain


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the steps of a normalizer or pre-tokenizer, those inside sequences included."""
    waiting = [part]
    while waiting:
        step = waiting.pop()
        if isinstance(step, dict):
            yield step
            for key in _SEQUENCES:
                if isinstance(step.get(key), list):
                    waiting += step[key]


def _growth(step: dict[str, Any]) -> float:
    """Return how many times as long a step can make a text."""
    if step.get("type") != "Replace":
        return _GROWTH_OF.get(str(step.get("type")), 1)
    pattern, content = step.get("pattern"), str(step.get("content", ""))
    literal = pattern.get("String") if isinstance(pattern, dict) else None
    if isinstance(literal, str) and literal:
        return max(1.0, len(content) / len(literal))
    return 1 + len(content)  # a regular expression can match the empty text
