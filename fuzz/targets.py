"""All targets by name."""

from __future__ import annotations

from collections.abc import Mapping

from fuzz import models, readers, requests, settings
from fuzz.target import Target

TARGETS: Mapping[str, Target] = {target.name: target for room in (readers, settings, requests, models) for target in room.targets()}
