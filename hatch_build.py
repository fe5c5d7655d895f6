"""What the build of the package adds: a README without the links that work only in a clone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = r"\((?!https?://)[^)]*\)"


def for_an_index(readme: str) -> str:
    """Return a README whose relative links are plain text and whose pictures are left out."""
    without_pictures = re.sub(rf"!\[[^\]]*\]{_RELATIVE}\n*", "", readme)
    return re.sub(rf"\[([^\]]*)\]{_RELATIVE}", r"\1", without_pictures)


class Readme(MetadataHookInterface):
    """Set the description that package indexes show."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_an_index(text)}
