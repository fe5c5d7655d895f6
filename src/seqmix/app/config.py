"""The config of a run: pydantic models, TOML on disk; unknown keys and contradictions are refused before a model loads."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from seqmix.app.config_errors import refusal
from seqmix.errors import ConfigError
from seqmix.query.policies import POLICIES

PRESETS = Path(__file__).parent / "presets"
_FIRST = {
    "augment": {"score_range": "0,500"}
}  # defaults that have changed, as they were: they stay out of the hash, the new ones do not


def _policy(name: str) -> str:
    if name not in POLICIES:
        raise ValueError(f"must be one of {', '.join(POLICIES)}; got {name[:80]!r}")
    return name


Policy = Annotated[str, AfterValidator(_policy)]
Count = Annotated[int, Field(ge=1, le=2**31)]
Rate = Annotated[float, Field(ge=0, le=100)]
Positive = Annotated[float, Field(gt=0, le=1e6)]
_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Tagging(_Section):
    """The tagger."""

    encoder: str = "starter"
    head: Literal["linear", "crf"] = "linear"
    device: str | None = None


class Training(_Section):
    """How each round trains."""

    epochs: Count = 10
    min_steps: int = Field(
        default=0, ge=0, le=2**31
    )  # take at least so many optimizer steps, however few the sentences
    lr: float | None = Field(default=None, gt=0, lt=1)
    batch_size: Count = 32
    max_pieces: int = Field(default=128, ge=8, le=2**31)
    mixup: float | None = Field(default=None, gt=0, le=1e6)


class Adapt(_Section):
    """Masked-LM training of the encoder on the text of the pool before anything else."""

    epochs: int = Field(default=0, ge=0)  # 0 is off
    lr: float | None = Field(default=None, gt=0, lt=1)


class SelfTraining(_Section):
    """A student that learns from unlabeled sentences as its teachers tag them."""

    teachers: int = Field(default=0, ge=0)  # 0 is off
    sentences: int = Field(default=2000, ge=1)
    confidence: float = Field(default=0.0, ge=0, lt=1)
    repeat: int = Field(
        default=1, ge=1
    )  # how often the labeled sentences stand in the student's set
    steps: int | None = Field(default=None, ge=1)  # the student's
    generations: int = Field(default=1, ge=1)  # students of one are the teachers of the next


class Query(_Section):
    """What is asked."""

    policy: Policy = "nte"
    size: Count | Annotated[list[Count], Field(min_length=1)] = 100  # one number, or one a round
    diverse: bool = False
    without_entity: float = Field(
        default=0.0, ge=0, lt=1
    )  # share of sentences with no predicted entity
    tokens: int | None = Field(
        default=None, ge=1
    )  # a budget in tokens a round; size is then the most sentences


class Augment(_Section):
    """What is generated from each batch of labeled sentences."""

    variant: Literal[
        "none", "whole", "sub", "label", "mention", "token", "shuffle", "duplicate", "mention+sub"
    ] = "sub"
    rate: Rate | Annotated[list[Rate], Field(min_length=1)] = 0.2
    alpha: Positive | Annotated[list[Positive], Field(min_length=1)] = 8.0
    window: Count = 5
    density: float = Field(default=0.6, ge=0, le=1)
    score_range: str = "0x,400x"
    base: Literal["e", "2"] = "e"  # of the perplexity; where it is not given, 2 for `whole`
    lm: str = "starter"
    table: Literal["encoder", "trained", "contextual"] = "encoder"
    distance: Literal["l2", "cosine", "csls"] = "l2"
    windows: Literal["fixed", "spans"] = "fixed"
    partners: Literal["random", "similar"] = "random"
    seen: bool = False  # only words of the labeled and unlabeled text are generated
    alphabetic: bool = False  # only words made of letters are generated
    min_count: int = Field(
        default=0, ge=0
    )  # only words that occur at least this often in that text are generated
    keep_case: bool = False
    max_uses: int | None = Field(default=None, ge=1)
    guard: int = Field(default=0, ge=0)  # folds of the "does it help?" guard; 0 is off

    @model_validator(mode="before")
    @classmethod
    def _base_of_variant(cls, given: Any) -> Any:
        unsaid = (
            isinstance(given, dict)
            and given.get("base") is None
            and given.get("variant") == "whole"
        )
        return {**given, "base": "2"} if unsaid else given


class Loop(_Section):
    """The rounds."""

    seed_size: Count = 200
    rounds: int = Field(default=5, ge=0, le=100_000)
    slice: int | None = Field(
        default=None, ge=1
    )  # take this many sentences of the training data, at random
    warm: bool = False
    match_steps: bool = True  # arms without augmentation take the steps of those with it
    stop_sentences: int | None = None
    stop_tokens: int | None = None
    stop_agreement: float | None = Field(default=None, gt=0, le=1)
    stop_uncertainty: float | None = Field(default=None, gt=0)


class Data(_Section):
    """How the data folder is read."""

    tag_column: int = -1
    token_column: int = 0


class Config(_Section):
    """A whole run."""

    seed: int = Field(default=0, ge=0)
    data: Data = Data()
    tagger: Tagging = Tagging()
    training: Training = Training()
    adapt: Adapt = Adapt()
    self_training: SelfTraining = SelfTraining()
    query: Query = Query()
    augment: Augment = Augment()
    loop: Loop = Loop()

    @model_validator(mode="after")
    def _agree(self) -> Config:
        for text in (
            self.tagger.encoder,
            self.tagger.device or "",
            self.augment.score_range,
            self.augment.lm,
        ):
            if not text.isprintable():
                raise ValueError(f"a name is one line of printable text; found {text[:80]!r}")
        if "crf" in POLICIES[self.query.policy].needs and self.tagger.head != "crf":
            raise ValueError(
                f"query.policy {self.query.policy} needs tagger.head crf; got {self.tagger.head}"
            )
        own = self.self_training
        if not own.teachers and own.generations > 1:
            raise ValueError("self_training.generations needs self_training.teachers")
        if self.loop.slice is not None and self.loop.slice < self.loop.seed_size:
            raise ValueError(
                f"loop.slice ({self.loop.slice}) is smaller than loop.seed_size ({self.loop.seed_size})"
            )
        return self

    @property
    def arm(self) -> str:
        """What the run is called in reports: policy and augmentation."""
        return self.query.policy + (
            "" if self.augment.variant == "none" else f"+{self.augment.variant}"
        )

    def toml(self) -> str:
        """The resolved config as TOML; None is left out."""
        lines = [f"seed = {self.seed}"]
        for name, section in self.model_dump(exclude={"seed"}).items():
            lines.append(f"\n[{name}]")
            lines += [
                f"{key} = {_spelled(value)}" for key, value in section.items() if value is not None
            ]
        return "\n".join(lines) + "\n"

    @property
    def digest(self) -> str:
        """A short hash of all that is not the first default, so that new keys and defaults leave the hashes of old results as they are."""
        chosen = self.model_dump(exclude_defaults=True)
        everything = self.model_dump()
        for section, keys in _FIRST.items():
            for key, first in keys.items():
                own = chosen.setdefault(section, {})
                own.pop(key, None)
                if everything[section][key] != first:
                    own[key] = everything[section][key]
            if not chosen[section]:
                del chosen[section]
        if self.augment.variant == "mention+sub":
            chosen["augment"]["variant"] = "best"  # as the variant was called when it was measured
        return hashlib.sha256(json.dumps([1, chosen], sort_keys=True).encode()).hexdigest()[:12]


def load_config(
    preset: str | None = None,
    file: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> Config:
    """Return the config of a preset, a TOML file over it, and changes like {"augment.rate": 0.4} over both."""
    values: dict[str, Any] = {}
    if preset is not None:
        path = PRESETS / f"{preset}.toml"
        if path.parent != PRESETS or not path.exists():
            raise ConfigError(
                f"there is no preset {preset[:80]!r}; there are {', '.join(sorted(p.stem for p in PRESETS.glob('*.toml')))}"
            )
        values = _merged(values, _read(path))
    if file is not None:
        values = _merged(values, _read(file))
    values = _merged(values, nested(changes or {}))
    if seed is not None:
        values["seed"] = seed
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(refusal(error, Config)) from error


def parse_changes(texts: Iterable[str] | None) -> dict[str, Any]:
    """Return the mapping that `--set` strings mean.

    >>> parse_changes(["augment.rate=0.4", "query.policy=mnlp"])
    {'augment.rate': 0.4, 'query.policy': 'mnlp'}
    """
    changes: dict[str, Any] = {}
    for key, value in map(_parse_change, texts or ()):
        changes.pop(key, None)  # the last one counts, and comes last
        changes[key] = value
    return changes


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with dotted keys as sections.

    >>> nested({"augment.rate": 0.4})
    {'augment': {'rate': 0.4}}
    """
    tree: dict[str, Any] = {}
    for key, value in values.items():
        branch: Any = nested(value) if isinstance(value, Mapping) else value
        for part in reversed(key.split(".")):
            branch = {part: branch}
        tree = _merged(tree, branch)
    return tree


def text_for(folder: Path, config: Config) -> str:
    """The config as TOML for a run in a folder: as it stands there where it says the same, for a key that is new since is not in it."""
    path = folder / "config.toml"
    same = path.is_file() and load_config(None, path) == config
    return path.read_text(encoding="utf-8") if same else config.toml()


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # a number of 5,000 digits is a bare ValueError
        raise ConfigError(f"cannot read the config {path}: {error}") from error


def _spelled(value: Any) -> str:
    """JSON is TOML but for DEL and for characters beyond U+FFFF, which TOML does not take in halves."""
    return _PAIR.sub(_joined, json.dumps(value)).replace("\x7f", "\\u007f")


def _joined(pair: re.Match[str]) -> str:
    character: str = json.loads(f'"{pair[0]}"')
    return f"\\U{ord(character):08x}"


def _parse_change(text: str) -> tuple[str, Any]:
    """Split `augment.rate=0.4`; the value is TOML, or a plain word."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(
            f"--set must look like key=value, such as augment.rate=0.4; got {text[:80]!r}"
        )
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except (ValueError, RecursionError):
        return key.strip(), value.strip()


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        merged[key] = (
            _merged(merged[key], value)
            if isinstance(value, dict) and isinstance(merged.get(key), dict)
            else value
        )
    return merged
