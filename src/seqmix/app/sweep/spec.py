"""A sweep file: arms × grid × seeds of an experiment, resolved into runs before anything loads.

title = "Main curves, CoNLL-03"
data = "conll03"            # a folder under --data, or the sample gazette
preset = "conll03"
seeds = 10                  # 0 … 9; or a list
[set]                       # for all arms
"augment.rate" = 0.4
[arms."none"]               # may also hold preset, data, most_steps, and grid = false: without it
"augment.variant" = "none"
[arms."sub"]
[grid]                      # every combination, for every arm: "sub alpha=2"
"augment.alpha" = [0.5, 2, 8]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seqmix.app.config import Config, load_config, read_toml
from seqmix.app.sweep.lengths import checked_steps, shortened
from seqmix.errors import ConfigError
from seqmix.settings import Natural, explain

_ABOUT_THE_ARM = ("preset", "data", "grid", "most_steps")
_MOST = 10_000  # seeds, and arms with all points of the grid


class Sweep(BaseModel):
    """The file as it is written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    data: str
    preset: str | None = None
    seeds: Annotated[int, Field(ge=1, le=_MOST)] | Annotated[list[Natural], Field(min_length=1)] = 5
    changes: dict[str, Any] = Field(default_factory=dict, alias="set")
    arms: dict[str, dict[str, Any]] = Field(min_length=1)
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Arm:
    """One way to run, whatever the seed."""

    name: str
    family: str  # the name without the grid's part
    data: str
    preset: str | None
    config: Config  # with seed 0
    home: str  # folder of its runs, which arms with the same data and config share

    @property
    def digest(self) -> str:
        """The hash of the config with seed 0, as `seqmix simulate --dry-run` prints it."""
        return self.config.digest


@dataclass(frozen=True)
class Experiment:
    """A sweep with everything resolved."""

    name: str
    title: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]

    def chosen(self, names: str | None) -> tuple[Arm, ...]:
        """Return the arms named `a,b`, each with its whole grid; None means all arms."""
        if names is None:
            return self.arms
        choice = {name.strip() for name in names.split(",")}
        for name in sorted(choice):
            if not any(name in (arm.name, arm.family) for arm in self.arms):
                names = ", ".join(arm.name for arm in self.arms)
                raise ConfigError(
                    f"--arms: there is no arm {name!r} in {self.name}; there are {names}"
                )
        return tuple(arm for arm in self.arms if {arm.name, arm.family} & choice)


@dataclass(frozen=True)
class Job:
    """One run: an arm with a seed."""

    experiment: str
    arm: Arm
    seed: int

    @property
    def config(self) -> Config:
        """The arm's config with this seed."""
        return self.arm.config.model_copy(update={"seed": self.seed})

    @property
    def folder(self) -> Path:
        """Where it runs, inside the sweep's directory."""
        return Path("runs") / self.arm.home / f"seed-{self.seed}"

    def __str__(self) -> str:
        return f"{self.arm.name}, seed {self.seed}"


def read_sweep(path: Path) -> Experiment:
    """Return the experiment in a file, after checking every arm."""
    try:
        sweep = Sweep.model_validate(read_toml(path, "sweep"))
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain(error, Sweep)}") from error
    if (points := len(sweep.arms) * prod(len(values) for values in sweep.grid.values())) > _MOST:
        raise ConfigError(f"{path}: arms and grid make {points} arms; at most {_MOST} are run")
    arms: list[Arm] = []
    homes: dict[tuple[str, str], str] = {}
    taken: dict[str, tuple[str, str]] = {}
    names: set[str] = set()
    for name, family, values in _points(sweep):
        try:
            arm = _arm(name, family, values, sweep, homes)
        except ConfigError as error:
            raise ConfigError(f"{path}, arm {name[:80]!r}: {error}") from error
        if arm.name in names or taken.setdefault(arm.home, (arm.data, arm.digest)) != (
            arm.data,
            arm.digest,
        ):
            raise ConfigError(
                f"{path}: two arms are called {name[:80]!r}, or nearly so; give them other names"
            )
        arms.append(arm)
        names.add(arm.name)
    seeds = range(sweep.seeds) if isinstance(sweep.seeds, int) else sweep.seeds
    return Experiment(path.stem, sweep.title, tuple(arms), tuple(dict.fromkeys(seeds)))


def jobs(experiment: Experiment, arms: Iterable[Arm], seeds: Iterable[int]) -> list[Job]:
    """Return the runs, seed by seed, so that an interrupted sweep has balanced arms.

    A run that arms share comes once.
    """
    unique: dict[tuple[str, int], Job] = {}
    for seed, arm in product(seeds, list(arms)):
        unique.setdefault((arm.home, seed), Job(experiment.name, arm, seed))
    return list(unique.values())


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds that a text means.

    >>> parse_seeds("3"), parse_seeds("5-7"), parse_seeds("2,4")
    ((0, 1, 2), (5, 6, 7), (2, 4))
    """
    try:
        if "," in text:
            return tuple(dict.fromkeys(int(part) for part in text.split(",") if part.strip()))
        first, dash, last = text.partition("-")
        seeds = range(int(first), int(last) + 1) if dash else range(int(text))
        chosen = tuple(seeds[: _MOST + 1])
    except ValueError:
        chosen = ()
    if len(chosen) > _MOST:
        raise ConfigError(f"--seeds must be at most {_MOST} seeds; got {text[:80]!r}")
    if not chosen:
        raise ConfigError(f"--seeds must look like 10 (0 to 9), 5-9 or 2,4; got {text[:80]!r}")
    return chosen


def _points(sweep: Sweep) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, family and changes of each arm with each point of the grid."""
    for family, changes in sweep.arms.items():
        values = {**_flat(sweep.changes), **_flat(changes)}
        grid = sweep.grid if values.pop("grid", True) else {}
        for point in product(*grid.values()):
            name = " ".join(
                [
                    family,
                    *(
                        f"{key.rpartition('.')[2]}={_value_name(value)}"
                        for key, value in zip(grid, point, strict=True)
                    ),
                ]
            )
            yield name, family, {**values, **dict(zip(grid, point, strict=True))}


def _arm(
    name: str, family: str, values: dict[str, Any], sweep: Sweep, homes: dict[tuple[str, str], str]
) -> Arm:
    home = re.sub(r"[^A-Za-z0-9._+=%-]+", "-", name).strip("-.")
    if "," in name or not home or not name.isprintable():
        raise ConfigError(
            "an arm's name must be one line with a letter or digit and no comma, "
            "since --arms separates names by commas"
        )
    if "seed" in values:
        raise ConfigError(
            "seed: a sweep gives its seeds at the top of the file, as seeds = 10 or seeds = [3, 4]"
        )
    data, preset = values.get("data", sweep.data), values.get("preset", sweep.preset)
    if not isinstance(data, str) or not isinstance(preset, str | None):
        raise ConfigError("data and preset: expected their names as strings")
    changes = {key: value for key, value in values.items() if key not in _ABOUT_THE_ARM}
    config = load_config(preset, None, changes, seed=0)
    if "most_steps" in values:
        config = shortened(config, checked_steps(values["most_steps"]))
    return Arm(name, family, data, preset, config, homes.setdefault((data, config.digest), home))


def _flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """`"augment.rate" = 0.4` and `augment.rate = 0.4` mean the same."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{above}{key}.") if isinstance(value, dict) else {above + key: value}
    return flat


def _value_name(value: Any) -> str:
    parts: Sequence[Any] = value if isinstance(value, list) else [value]
    return "-".join(str(part).replace(",", "-") for part in parts)
