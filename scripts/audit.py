"""Hold the locks against the published weaknesses we know of, and say what else is wrong with them.

    python scripts/audit.py             # what CI runs; it needs no network
    python scripts/audit.py --release   # an old list of advisories is wrong too

Every package must be pinned to one version with the hashes of its files, have a license that is
known, and be in no version that security/advisories.toml calls affected; neither may the lowest
version that pyproject.toml lets in. The list is kept by hand, so that "OK" means: nothing of what
is in the list. How old the list is, is said, with a warning past six months. Exit status 1 when
something is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK, CORE, CUDA, CPU = (
    ROOT / f"requirements{part}.lock" for part in ("", "-core", "-cuda", "-cpu")
)
_FRESH = 6  # months for which a list of advisories is taken as it is
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
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
        return found and any(
            versions.contains(package.version, prereleases=True) for versions in self.affected
        )


def read_lock(path: Path = LOCK) -> tuple[list[Package], list[str]]:
    """The pinned packages, those for one system alone included, and the lines that pin nothing."""
    lines = [
        re.split("[#;]|--hash", line)[0].strip(" \\")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    found = {line: _PINNED.fullmatch(line) for line in lines if line}
    packages = [Package(canonicalize_name(match[1]), match[2]) for match in found.values() if match]
    return packages, [line for line, match in found.items() if not match]


def read_hashes(path: Path = LOCK) -> dict[str, list[str]]:
    """The SHA-256 of the files of each package, by its name; a pin without any has none."""
    hashes: dict[str, list[str]] = {}
    own: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if pinned := _PINNED.match(line):
            own = hashes.setdefault(canonicalize_name(pinned[1]), [])
        own += _HASH.findall(line)
    return hashes


def months_since(as_of: str, today: date) -> int:
    """Whole months since a month such as 2025-12."""
    year, month = map(int, as_of.split("-"))
    return 12 * (today.year - year) + today.month - month


def read_advisories(
    path: Path = ROOT / "security" / "advisories.toml",
) -> tuple[list[Advisory], str]:
    """The advisories, and the month the list was last gone through."""
    given: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    made = [
        Advisory(
            id,
            canonicalize_name(one["package"]),
            tuple(SpecifierSet(own) for own in one["affected"]),
            one["what"],
        )
        for id, one in given["advisories"].items()
    ]
    return made, given["as_of"]


def lowest_allowed(path: Path = ROOT / "pyproject.toml") -> list[Package]:
    """The lowest version of each package that our own requirements let in."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    asked = [
        Requirement(one)
        for part in (project["dependencies"], *project["optional-dependencies"].values())
        for one in part
    ]
    bounds = {
        (canonicalize_name(one.name), own.version)
        for one in asked
        for own in one.specifier
        if own.operator in (">=", "==", "~=")
    }
    return [Package(name, version) for name, version in sorted(bounds)]


_LOOKED_UP = {
    "atheris": "Apache-2.0"
}  # packages that name none in their metadata, by the license file of their source


def license_of(name: str) -> str | None:
    """The license an installed package names, as an SPDX expression where it has one.

    None when it names none or is not installed.
    """
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    said = [
        about.get("License-Expression"),
        *_classified(about.get_all("Classifier") or ()),
        (about.get("License") or "").strip(),
    ]
    return next((text.splitlines()[0] for text in said if text), _LOOKED_UP.get(name))


def _classified(classifiers: Iterable[str]) -> Iterator[str]:
    yield from (
        one.rpartition(" :: ")[2]
        for one in classifiers
        if one.startswith("License :: ") and one.count(" :: ") > 1
    )


def lock_problems(
    full: Path = LOCK, core: Path = CORE, others: Iterable[Path] = (CUDA, CPU)
) -> Iterator[str]:
    """What is wrong with the locks as such: a pin without hashes, a core that is no part of all."""
    for path in (full, core, *others):
        yield from (
            f"{path.name}: {line}: is not pinned to one version"
            for line in read_lock(path)[1]
            if path != full
        )
        yield from (
            f"{path.name}: {name} has no hash; run make lock"
            for name, hashes in read_hashes(path).items()
            if not hashes
        )
    whole = set(read_lock(full)[0])
    yield from (
        f"{core.name}: {one.name} {one.version} is not in {full.name}"
        for one in read_lock(core)[0]
        if one not in whole
    )


def problems(
    packages: Iterable[Package],
    loose: Iterable[str],
    lowest: Iterable[Package],
    advisories: Iterable[Advisory],
) -> Iterator[str]:
    """Everything that is wrong, a line each."""
    packages, advisories = list(packages), list(advisories)
    yield from (f"{line}: is not pinned to one version" for line in loose)
    yield from (
        f"{one.name} {one.version}: its license is not known here"
        for one in packages
        if license_of(one.name) is None
    )
    for where, found in (("requirements.lock", packages), ("pyproject.toml lets in", list(lowest))):
        yield from (
            f"{where}: {one.name} {one.version} has {known.id}: {known.what}"
            for one in found
            for known in advisories
            if known.hits(one)
        )


def main() -> int:
    """Print what is wrong, or that nothing is, and how old the list of advisories is."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument(
        "--release", action="store_true", help="fail when the list of advisories is old"
    )
    packages, loose = read_lock()
    elsewhere = [one for path in (CUDA, CPU) for one in read_lock(path)[0]]
    advisories, as_of = read_advisories()
    age = months_since(as_of, datetime.now(UTC).date())
    told = f"the list of advisories is of {as_of}, {age} months old"
    wrong = [*lock_problems(), *problems(packages, loose, lowest_allowed(), advisories)]
    wrong += [
        f"{one.name} {one.version} has {known.id}: {known.what}"
        for one in elsewhere
        for known in advisories
        if known.hits(one)
    ]
    if options.parse_args().release and age > _FRESH:
        wrong.append(f"{told}; bring security/advisories.toml up to date first")
    for line in wrong:
        print(line)
    if not wrong:
        print(
            f"OK: {len(packages)} packages, all pinned with hashes and licensed, "
            f"none affected by the {len(advisories)} advisories known"
        )
        late = (
            f"; past {_FRESH} months it says little: scan sbom.json with a network before a release"
        )
        print(told + (late if age > _FRESH else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
