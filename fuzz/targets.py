"""All targets by name."""

from __future__ import annotations

from collections.abc import Mapping

from fuzz import models, readers, requests, resuming, settings, studio
from fuzz.target import Target

_ROOMS = (readers, settings, requests, models, resuming, studio)
TARGETS: Mapping[str, Target] = {
    target.name: target for room in _ROOMS for target in room.targets()
}
