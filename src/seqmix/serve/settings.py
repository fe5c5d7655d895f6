"""The settings of a project: the file project.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from seqmix.augment.settings import AnyVariant
from seqmix.data.files import refuse_links, replacing, version_problem
from seqmix.errors import ConfigError, SeqMixError, StoreError, TagError
from seqmix.serve.addresses import origin
from seqmix.serve.store.database.postgresql import check_url
from seqmix.serve.store.database.sqlite_check import PARTS
from seqmix.settings import settings
from seqmix.tagger.settings import Head

FORMAT = 1
SETTINGS, GUIDELINES, STORE, MODELS = "project.toml", "guidelines.md", "store.sqlite", "models"
MAX_TAGS = 35  # the digits 1 to 9 and the letters: a key for each
_FILES = (
    SETTINGS,
    GUIDELINES,
    MODELS,
    "training.toml",
    "trainer.log",
    "lock",
    *(STORE + part for part in (*PARTS, "-journal")),
)
Tokenizer = Literal["words", "web", "numbers", "spaces"]  # of `data.tokenizers`
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]


@settings
class ProjectSettings:
    """What project.toml says."""

    name: str
    """One line of printable text."""
    tags: tuple[str, ...]
    """The types of spans to label."""
    store: str | None = None
    """A PostgreSQL address; by default a file in the folder."""
    policy: str = "nte"
    """How the next sentences are chosen."""
    audit_share: Annotated[Number, Field(ge=0, le=0.9)] = 0.1
    """Share of answers on random sentences, for an unbiased F1."""
    audit_train: Annotated[bool, Field(strict=True)] = False
    """Learn from these answers, too; their F1 is then biased."""
    overlap_share: Annotated[Number, Field(ge=0, le=1)] = 0.0
    """Share of answered sentences that a second annotator gets."""
    batch: Annotated[Whole, Field(ge=1, le=100_000)] = 10
    """New answers between two trainings."""
    direction: Literal["auto", "ltr", "rtl"] = "auto"
    """Direction of the text."""
    encoder: str = "starter"
    """The encoder: starter, a Hugging Face name or a folder."""
    head: Head = "crf"
    """What turns words into tags."""
    start: str | None = None
    """A tagger to begin with: a folder, or a model from another library such as spacy:NAME."""
    augment: AnyVariant = "mention"
    """How sentences are generated, or none."""
    rate: Annotated[Number, Field(ge=0, le=10)] = 1.0
    """Generated sentences for each labeled one."""
    seed: Annotated[Whole, Field(ge=0, le=2**63)] = 0
    """The random seed."""
    tokens: Tokenizer = "words"
    """How text is cut into tokens, also what is added later."""
    send_text_to: str = ""
    """Addresses that language models are at and that text of the project may be sent to,
    such as https://api.example.com."""

    def __post_init__(self) -> None:
        check_tags(self.tags)
        if self.store is not None:
            check_url(self.store)
        for place in self.send_text_to.split():
            if origin(place) != place:
                raise ConfigError(
                    f"send_text_to must name addresses such as {origin(place)}; got {place!r}"
                )
        if not self.name.strip() or not self.name.isprintable():
            raise ConfigError(
                f"the name of a project must be a line of printable text; got {self.name!r}"
            )

    def toml(self) -> str:
        """Return the settings as TOML, without those that are None."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        lines = [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()
        ]
        return "\n".join([f"format_version = {FORMAT}", *lines]) + "\n"


def check_tags(tags: Sequence[str]) -> None:
    """Refuse tags that cannot be distinguished, typed or written to a file."""
    if not tags:
        raise TagError("a project needs at least one tag, such as --tags PER,ORG,LOC")
    if len(tags) > MAX_TAGS:
        raise TagError(
            f"a project has at most {MAX_TAGS} tags, since each has a key; found {len(tags)}"
        )
    for at, tag in enumerate(tags):
        if not isinstance(tag, str) or not 1 <= len(tag) <= 64 or not _is_word(tag):
            raise TagError(
                "a tag is 1 to 64 printable characters without white space", text=str(tag)
            )
        if tag in ("O", "_"):
            raise TagError("this tag means that nothing is there; leave it out", text=tag)
        if tag.startswith(("B-", "I-")):
            raise TagError(f"name the types alone, without B- and I-: {tag[2:] or 'PER'}", text=tag)
        if tag in tags[:at]:
            raise TagError("a tag is named twice", text=tag)


def _is_word(text: str) -> bool:
    return text.isprintable() and not any(c.isspace() for c in text)


def read_settings(folder: Path) -> ProjectSettings:
    """Return the settings of a project, every key checked."""
    path = folder / SETTINGS
    refuse_links(folder, _FILES)
    if not path.is_file():
        raise StoreError(
            f"{folder} is not a project: it has no {SETTINGS}; seqmix init creates one"
        )
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        version = values.pop("format_version", None)
        if (why := version_problem(folder, version, FORMAT)) is not None:
            raise ConfigError(why)
        return ProjectSettings(**values)
    except (OSError, ValueError, RecursionError, SeqMixError) as error:
        raise ConfigError(f"{path}: {error}") from error


def change_settings(
    folder: Path,
    check: Callable[[ProjectSettings], object] = lambda settings: None,
    **changes: Any,
) -> ProjectSettings:
    """Change some settings of a project; `check` may refuse the new ones."""
    before = {
        key: value for key, value in asdict(read_settings(folder)).items() if value is not None
    }
    settings = ProjectSettings(**before | changes)
    check(settings)
    write_settings(folder, settings, (folder / SETTINGS).stat().st_mode & 0o777)
    return settings


def write_settings(folder: Path, settings: ProjectSettings, mode: int) -> None:
    """Write project.toml.

    The mode is set before the text is written, so that others can never read a password.
    """
    with replacing(folder / SETTINGS) as path:
        path.touch(mode)
        path.write_text(settings.toml(), encoding="utf-8", newline="\n")
        path.chmod(mode)
