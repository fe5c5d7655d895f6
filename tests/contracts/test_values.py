"""What a package hands out as a value is one: nobody who was given it can change it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest

from seqmix.augment.pairing import Stretch
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Span
from seqmix.data.text import CharSpan

COUNTING = {"Perplexity"}  # it remembers what it has scored


def values(package: str) -> Iterator[type]:
    """The public dataclasses of a module, or of a package and all below it."""
    root = importlib.import_module(f"seqmix.{package}")
    below = pkgutil.walk_packages(getattr(root, "__path__", []), f"{root.__name__}.")
    for module in [root, *(importlib.import_module(each.name) for each in below)]:
        for name, value in vars(module).items():
            if (
                isinstance(value, type)
                and is_dataclass(value)
                and value.__module__ == module.__name__
                and not name.startswith("_")
            ):
                yield value


@pytest.mark.parametrize(
    "package",
    [
        "augment",
        "data",
        "loop",
        "query",
        "serve.progress.agreement",
        "serve.progress.estimates",
        "serve.store.queue",
        "serve.store.records",
        "serve.store.sentences",
    ],
)
def test_values_cannot_be_changed(package: str) -> None:
    frozen = [value for value in values(package) if value.__name__ not in COUNTING]

    assert frozen
    for value in frozen:
        with pytest.raises(FrozenInstanceError):
            setattr(
                object.__new__(value), fields(value)[0].name if fields(value) else "anything", None
            )


@pytest.mark.parametrize("value", [CharSpan, Sentence, Span, Stretch])
def test_values_of_which_there_are_millions_carry_no_dictionary(value: type) -> None:
    assert not hasattr(object.__new__(value), "__dict__")
