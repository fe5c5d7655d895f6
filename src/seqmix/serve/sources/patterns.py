"""Regular expressions over the text of a sentence, each with a limit in time.

A match that begins or ends inside a token is left out. A pattern can take longer than the age of
the universe, and compiling one can take all memory: `check_patterns` tries new ones in a process
with limits, and a pattern that is too slow on three sentences is left out from then on.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import regex

from seqmix.data.sentence import Sentence
from seqmix.data.spans import Span
from seqmix.data.text import CharSpan, align_one, without_overlaps
from seqmix.errors import DataError
from seqmix.serve.store.records import Mark

EACH = 0.02  # seconds for a pattern on a sentence
_ALL = 0.05  # seconds for all patterns on a sentence
_STRIKES = 3
_TRIAL = Path(__file__).with_name("trial.py")
_PATIENCE = 60.0  # seconds for the trial of a source


class Patterns:
    """Compiled patterns."""

    def __init__(self, patterns: Iterable[tuple[str, str]], ignore_case: bool = False) -> None:
        flags = regex.IGNORECASE if ignore_case else 0
        self._patterns = [(regex.compile(pattern, flags), tag) for pattern, tag in patterns]
        self._strikes = Counter[str]()

    def marks(self, sentence: Sentence) -> list[Mark]:
        """Return the matches that are whole tokens; where two overlap, the longest."""
        if not self._patterns:
            return []
        text, offsets = sentence.located()
        counts, spans = Counter[str](), list[Span]()
        left = _ALL
        for pattern, tag in self._patterns:
            if self._strikes[pattern.pattern] >= _STRIKES:
                continue
            if left <= 0:
                break
            since, limit = time.monotonic(), min(EACH, left)
            try:
                # concurrent: other threads answer meanwhile
                matches = pattern.finditer(text, timeout=limit, concurrent=True)
                for match in matches:
                    if match.start() < match.end():
                        place = CharSpan(match.start(), match.end(), tag)
                        span = align_one(offsets, place, "drop", counts, text)
                        spans += [span] if span is not None else []
                left -= min(limit, time.monotonic() - since)
            except TimeoutError:
                self._strikes[pattern.pattern] += limit >= EACH
                left -= limit  # not what a busy machine took
        whole = without_overlaps(offsets, spans, "drop", counts, text)
        return [Mark(span.start, span.end, span.type) for span in whole]

    @property
    def slow(self) -> list[str]:
        """The patterns that are left out because they take too long."""
        return [pattern for pattern, n in self._strikes.items() if n >= _STRIKES]


def check_patterns(patterns: Sequence[str], texts: Sequence[str], ignore_case: bool) -> None:
    """Try patterns on some texts, and refuse one that is wrong, too large or too slow."""
    if not patterns:
        return
    job = {"patterns": patterns, "texts": texts, "ignore_case": ignore_case, "seconds": EACH}
    try:
        trial = subprocess.run(
            [sys.executable, "-I", str(_TRIAL)],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
        said = trial.stdout.splitlines()
    except subprocess.TimeoutExpired as error:
        said = str(error.stdout or b"", "utf-8").splitlines()
    tried, why = 0, "it takes too much memory or time"
    for line in said:
        tried, problem = json.loads(line)
        if problem:
            why = problem
            break
    else:
        if tried == len(patterns):
            return
    raise DataError(
        f"this regular expression cannot be used: {why}",
        text=patterns[min(tried, len(patterns) - 1)],
    )
