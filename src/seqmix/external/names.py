"""The names of other libraries' models: `hf:FOLDER:PER=person`, `spacy:en_core_web_sm`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seqmix.errors import ConfigError

LIBRARIES = ("hf", "spacy")


@dataclass(frozen=True)
class ExternalName:
    """A library, a model of it, and the project's types by the model's; None keeps all."""

    library: str
    model: str
    types: Mapping[str, str] | None = None

    def __str__(self) -> str:
        pairs = ",".join(f"{theirs}={ours}" for theirs, ours in (self.types or {}).items())
        return ":".join(filter(None, (self.library, self.model, pairs)))

    def renamed(self, type: str) -> str | None:
        """Return what the project calls a type of the model; None leaves it out."""
        return type if self.types is None else self.types.get(type)

    def absolute(self) -> ExternalName:
        """Return the same name from any working directory."""
        folder = Path(self.model)
        return (
            ExternalName(self.library, str(folder.absolute()), self.types)
            if folder.exists()
            else self
        )


def is_external(name: object) -> bool:
    """Whether the name is one of another library's model."""
    library, colon, _ = str(name).partition(":")
    return bool(colon) and library in LIBRARIES


def is_spacy(name: object) -> bool:
    """Whether the name is one of a spaCy pipeline."""
    return str(name).startswith("spacy:")


def parse_external(name: object) -> ExternalName:
    """Parse `hf:FOLDER:PER=person,ORG`: ORG keeps its name, and other types are left out."""
    library, _, rest = str(name).partition(":")
    model, colon, pairs = rest.rpartition(":")
    if not colon:
        model, pairs = rest, ""
    types = {}
    for pair in filter(None, (part.strip() for part in pairs.split(","))):
        theirs, _, ours = pair.partition("=")
        types[theirs.strip()] = ours.strip() or theirs.strip()
    if library not in LIBRARIES or not model or (colon and not all(types)) or (colon and not types):
        raise ConfigError(
            "a model from another library must look like hf:FOLDER, spacy:NAME or "
            f"hf:FOLDER:PER=person,ORG; got {str(name)[:80]!r}"
        )
    return ExternalName(library, model, types or None)
