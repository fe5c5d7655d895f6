"""Makers of augmenters, in a module that workers import without torch."""

from __future__ import annotations

from seqmix.augment.replacement import Replacement
from seqmix.errors import ConfigError


def mentions() -> Replacement:
    return Replacement("mention")


def again() -> Replacement:
    return Replacement("duplicate")


def nothing() -> Replacement:
    raise ConfigError("not today")
