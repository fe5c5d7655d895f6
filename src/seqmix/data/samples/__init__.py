"""The corpora inside the package: gazette, with entities or with event triggers.

>>> from seqmix.data.samples import sample
>>> len(sample("gazette:dev"))
100
"""

from __future__ import annotations

from pathlib import Path

from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

_HERE = Path(__file__).parent
_COLUMNS = {"gazette": 1, "gazette-triggers": 2}
_SPLITS = ("train", "dev", "test", "reserve")


def is_sample(name: str) -> bool:
    """Whether a name such as `gazette` or `gazette:train` is a sample rather than a file."""
    return name.partition(":")[0] in _COLUMNS


def sample(name: str) -> list[Sentence]:
    """Return one split of a sample corpus, such as `gazette:train` or `gazette-triggers:test`.

    Args:
        name: `gazette` (entities) or `gazette-triggers` (events), with one of the splits `:train`,
            `:dev`, `:test` and `:reserve`; by default `:train`.
    """
    corpus, _, split = name.partition(":")
    if corpus not in _COLUMNS or (split or "train") not in _SPLITS:
        splits = ", ".join(f":{split}" for split in _SPLITS)
        raise DataError(
            f"there is no sample {name!r}; there are {', '.join(_COLUMNS)}, each with {splits}"
        )
    path = _HERE / "gazette" / f"{split or 'train'}.conll"
    return list(formats.read(path, "conll", formats.Options(tag_column=_COLUMNS[corpus])))
