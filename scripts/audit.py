"""Hold requirements.lock against the published weaknesses we know of, and say what else is wrong with it.

    python scripts/audit.py

Every package must be pinned to one version, have a license that is known, and be in no version that security/advisories.toml calls
affected; neither may the lowest version that pyproject.toml lets in. The list is kept by hand and needs no network, so "OK" means: nothing
of what is in the list. Exit status 1 when something is wrong.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
_PINNED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!+_-]+)")


@dataclass(frozen=True)
class Package:
    """A package in one version, under its canonical name."""

    name: str
    version: str


@dataclass(frozen=True)
class Advisory:
    """A published weakness and the versions that have it."""

    id: str
    package: str
    affected: tuple[SpecifierSet, ...]
    what: str

    def hits(self, package: Package) -> bool:
        """Whether the package is affected."""
        found = package.name == self.package
        return found and any(versions.contains(package.version, prereleases=True) for versions in self.affected)


def read_lock(path: Path = ROOT / "requirements.lock") -> tuple[list[Package], list[str]]:
    """The pinned packages, those for one system alone included, and the lines that pin nothing."""
    lines = [re.split("[#;]", line)[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    found = {line: _PINNED.fullmatch(line) for line in lines if line}
    packages = [Package(canonicalize_name(match[1]), match[2]) for match in found.values() if match]
    return packages, [line for line, match in found.items() if not match]


def read_advisories(path: Path = ROOT / "security" / "advisories.toml") -> tuple[list[Advisory], str]:
    """The advisories, and the month the list was last gone through."""
    given: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    made = [
        Advisory(id, canonicalize_name(one["package"]), tuple(SpecifierSet(own) for own in one["affected"]), one["what"])
        for id, one in given["advisories"].items()
    ]
    return made, given["as_of"]


def lowest_allowed(path: Path = ROOT / "pyproject.toml") -> list[Package]:
    """The lowest version of each package that our own requirements let in."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    asked = [Requirement(one) for part in (project["dependencies"], *project["optional-dependencies"].values()) for one in part]
    bounds = {(canonicalize_name(one.name), own.version) for one in asked for own in one.specifier if own.operator in (">=", "==", "~=")}
    return [Package(name, version) for name, version in sorted(bounds)]


_LOOKED_UP = {"atheris": "Apache-2.0"}  # packages that name none in their metadata, by the license file of their source


def license_of(name: str) -> str | None:
    """The license an installed package names, as an SPDX expression where it has one; None when it names none or is not installed."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    said = [about.get("License-Expression"), *_classified(about.get_all("Classifier") or ()), (about.get("License") or "").strip()]
    return next((text.splitlines()[0] for text in said if text), _LOOKED_UP.get(name))


def _classified(classifiers: Iterable[str]) -> Iterator[str]:
    yield from (one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: ") and one.count(" :: ") > 1)


def problems(packages: Iterable[Package], loose: Iterable[str], lowest: Iterable[Package], advisories: Iterable[Advisory]) -> Iterator[str]:
    """Everything that is wrong, a line each."""
    packages, advisories = list(packages), list(advisories)
    yield from (f"{line}: is not pinned to one version" for line in loose)
    yield from (f"{one.name} {one.version}: its license is not known here" for one in packages if license_of(one.name) is None)
    for where, found in (("requirements.lock", packages), ("pyproject.toml lets in", list(lowest))):
        yield from (
            f"{where}: {one.name} {one.version} has {known.id}: {known.what}" for one in found for known in advisories if known.hits(one)
        )


def main() -> int:
    """Print what is wrong, or that nothing is."""
    packages, loose = read_lock()
    advisories, as_of = read_advisories()
    wrong = list(problems(packages, loose, lowest_allowed(), advisories))
    for line in wrong:
        print(line)
    if not wrong:
        print(f"OK: {len(packages)} packages, all pinned and licensed, none affected by the {len(advisories)} advisories known ({as_of})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
