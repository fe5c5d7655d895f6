"""What is said of files that another version of seqmix wrote. Everything the project writes names the version of its format."""

from __future__ import annotations

from pathlib import Path


def foreign(place: Path, found: object, known: int) -> str | None:
    """Why this seqmix does not open `place` and what to do about it; None when its format is the one we know."""
    if type(found) is not int or found < 1:
        return f"{place} does not say which format it has (its format_version is {found!r}); it is damaged, or was not made by seqmix"
    if found > known:
        return f"{place} has format {found}, written by a newer seqmix; this one reads formats up to {known}: upgrade seqmix"
    if found < known:
        return (
            f"{place} has format {found}, written by an older seqmix; this one reads format {known}"
        )
    return None
