"""The corpora that ship with the package: gazette, with entities or with event triggers.

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
    """Whether a name such as `gazette` or `gazette:train` means a sample rather than a file."""
    return name.partition(":")[0] in _COLUMNS


def sample(name: str) -> list[Sentence]:
    """One split of a sample: `gazette:train`, `gazette-triggers:test`, …; without a split it is the training set."""
    corpus, _, split = name.partition(":")
    if corpus not in _COLUMNS or (split or "train") not in _SPLITS:
        raise DataError(
            f"there is no sample {name!r}; there are {', '.join(_COLUMNS)}, each with {', '.join(':' + s for s in _SPLITS)}"
        )
    path = _HERE / "gazette" / f"{split or 'train'}.conll"
    return list(formats.read(path, "conll", formats.Options(tag_column=_COLUMNS[corpus])))
