"""Terms as people write them: a text or `re:` and a pattern, a tab, a tag.

Oslo<TAB>LOC
re:\\d+ mg<TAB>Dose
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqmix.data.files import lines
from seqmix.errors import DataError, TagError

PATTERN = "re:"
_LONGEST = 1000  # characters of a term
_MOST = 200_000  # terms of a source
_MOST_PATTERNS = 500  # each is tried on every sentence that is shown


@dataclass(frozen=True)
class Terms:
    """Texts and regular expressions, each with the tag of what they match."""

    texts: tuple[tuple[str, str], ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    ignore_case: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what the store keeps."""
        return {name: value for name, value in vars(self).items() if value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Terms:
        """Return the terms that `to_json` wrote."""
        texts, patterns = (
            tuple((str(text), str(tag)) for text, tag in values.get(name, ()))
            for name in ("texts", "patterns")
        )
        return cls(texts, patterns, bool(values.get("ignore_case")))


def read_terms(path: Path, tags: Collection[str], ignore_case: bool = False) -> Terms:
    """Return the terms of a file."""
    return parse_terms(lines(path), tags, ignore_case, path)


def parse_terms(
    numbered: Iterable[tuple[int, str]],
    tags: Collection[str],
    ignore_case: bool = False,
    path: Path | None = None,
) -> Terms:
    """Return the terms of numbered lines; empty lines are passed over."""
    texts, patterns = dict[str, str](), dict[str, str]()
    for number, line in numbered:
        if not line.strip():
            continue
        term, tab, tag = line.rpartition("\t")
        term, tag = term.strip(), tag.strip()
        if not tab or not term or len(term) > _LONGEST:
            raise DataError(
                f"expected a text of at most {_LONGEST} characters, a tab and a tag",
                path,
                number,
                line,
            )
        if tag not in tags:
            raise TagError(f"unknown tag; this project has {', '.join(tags)}", path, number, tag)
        if term.startswith(PATTERN):
            patterns[term.removeprefix(PATTERN)] = tag
        else:
            texts[term] = tag
    if len(texts) > _MOST or len(patterns) > _MOST_PATTERNS:
        raise DataError(
            f"a source has at most {_MOST:,} texts and {_MOST_PATTERNS} regular expressions;"
            " divide it",
            path,
        )
    if not texts and not patterns:
        raise DataError("expected lines with a text, a tab and a tag; there are none", path)
    return Terms(tuple(texts.items()), tuple(patterns.items()), ignore_case)
