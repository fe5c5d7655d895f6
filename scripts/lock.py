"""Write the locks: every package in one version, with the SHA-256 of each of its files.

    python scripts/lock.py            # the newest versions that pyproject.toml lets in
    python scripts/lock.py --keep     # the versions locked now; only what they lack is added

requirements.lock is everything and requirements-core.lock what the commands need. torch as the
index has it for Linux needs requirements-cuda.lock on top of either; a build for the CPU that lies
in a folder pip knows is in requirements-cpu.lock, to be installed first: of two files that fit pip
takes the one whose hash the index names. All files that the index has of a version are listed, so
that one lock serves every Python and machine there are files for. What to take is pip's decision,
and where to look is pip's configuration.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

ROOT = Path(__file__).parents[1]
FULL, CORE, CUDA, CPU = (f"requirements{part}.lock" for part in ("", "-core", "-cuda", "-cpu"))
TORCH = "torch==2.13.0"  # a build for the CPU has a version of its own, found where one lies
_BUILD = ("hatchling", "editables")  # what installing seqmix itself needs
_SERVED = (
    "matplotlib",
    "fastapi",
    "uvicorn",
    "sqlalchemy",
)  # part of the core beside the dependencies
_LINUX = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "extra": "",
}


@dataclass(frozen=True)
class Locked:
    """A package in one version, what it requires, and where it is needed at all."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    marker: str = ""


@dataclass(frozen=True)
class File:
    """A file of a package: its name, where it is, and its SHA-256 where the index names one."""

    name: str
    url: str
    sha256: str | None


class Index:
    """What pip would be offered, by pip's own configuration."""

    def __init__(self) -> None:
        from pip._internal.commands import (
            create_command,  # pip has no public way to list the files of a version
        )
        from pip._internal.index.collector import parse_links

        command: Any = create_command("download")
        options, _ = command.parse_args([])
        self._session = command._build_session(options)
        self._collector = command._build_package_finder(options, self._session)._link_collector
        self._parse = parse_links

    def files(self, name: str) -> Iterator[tuple[Version, File]]:
        """Every file of a package, with its version."""
        found = self._collector.collect_sources(name, self._links)
        for source in (*found.find_links, *found.index_urls):
            for link in (
                (*source.page_candidates(), *source.file_links()) if source is not None else ()
            ):
                if (version := version_of(link.filename, name)) is not None:
                    yield (
                        version,
                        File(
                            link.filename,
                            link.url_without_fragment,
                            link.hash if link.hash_name == "sha256" else None,
                        ),
                    )

    def hashes(self, name: str, version: str) -> list[str]:
        """The SHA-256 of every file of one version, those of local builds (1.0+cpu) included."""
        found = {
            file.url: file
            for own, file in self.files(name)
            if SpecifierSet(f"=={version}").contains(own, prereleases=True)
        }
        if not found:
            raise SystemExit(f"no index that pip knows has a file of {name} {version}")
        return sorted(
            {
                file.sha256 or hashlib.sha256(self._content(file.url)).hexdigest()
                for file in found.values()
            }
        )

    def builds(self, name: str, version: str) -> list[Locked]:
        """The builds of a version that are somebody's own (1.0+cpu)."""
        return [
            Locked(name, str(own))
            for own in sorted(
                {own for own, _ in self.files(name) if own.local and own.public == version}
            )
        ]

    def latest(self, name: str, wanted: SpecifierSet) -> tuple[Version, list[str]]:
        """The newest version among those wanted, and what its wheel for Linux requires."""
        files = [
            (version, file)
            for version, file in self.files(name)
            if version in wanted and version.local is None
        ]
        if not files:
            raise SystemExit(f"no index that pip knows has {name} {wanted}")
        newest = max(version for version, _ in files)
        wheels = sorted(
            file.url for version, file in files if version == newest and file.name.endswith(".whl")
        )
        linux = [
            url
            for url in wheels
            if "manylinux" in url and "x86_64" in url and ("cp311" in url or "abi3" in url)
        ]
        wheel = (linux or [url for url in wheels if "x86_64" in url] or wheels)[0]
        return newest, self._requires(wheel, name)

    def _links(self, page: Any) -> Iterable[Any]:
        response = self._collector.fetch_response(page)
        return [] if response is None else list(self._parse(response))

    def _requires(self, wheel: str, name: str) -> list[str]:
        """What a wheel requires: from beside it where the index has that, else from the wheel."""
        from pip._internal.metadata import MemoryWheel, get_wheel_distribution

        beside = self._session.get(wheel + ".metadata") if not wheel.startswith("file:") else None
        if beside is not None and beside.status_code == 200:
            metadata: Message = Parser().parsestr(beside.content.decode("utf-8"))
        else:
            metadata = get_wheel_distribution(
                MemoryWheel(wheel, io.BytesIO(self._content(wheel))), name
            ).metadata
        return [str(one) for one in metadata.get_all("Requires-Dist") or ()]

    def _content(self, url: str) -> bytes:
        if url.startswith("file:"):
            return Path(unquote(urlsplit(url).path)).read_bytes()
        response = self._session.get(url)
        response.raise_for_status()
        return bytes(response.content)


def version_of(file: str, name: str) -> Version | None:
    """The version a file is of; None for another package's file, or no package."""
    try:
        found, version = (
            parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
        )
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return version if found == canonicalize_name(name) else None


def resolved(constraints: Path | None) -> list[Locked]:
    """What pip would install for everything there is in pyproject.toml, without installing it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ",".join(project["optional-dependencies"])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--report",
            str(report),
        ]
        limits = ["-c", str(constraints)] if constraints is not None else []
        subprocess.run([*pip, *limits, TORCH, *_BUILD, f"{ROOT}[{extras}]"], check=True)
        found = [
            one["metadata"] for one in json.loads(report.read_text(encoding="utf-8"))["install"]
        ]
    packages = [
        Locked(canonicalize_name(one["name"]), one["version"], tuple(one.get("requires_dist", ())))
        for one in found
    ]
    return with_markers([one for one in packages if one.name != project["name"]], project)


def with_markers(packages: Iterable[Locked], project: Mapping[str, Any]) -> list[Locked]:
    """The packages by name; one that only pyproject.toml wants, on one system, is marked so."""
    packages = list(packages)
    asked = [
        Requirement(one)
        for part in (project["dependencies"], *project["optional-dependencies"].values())
        for one in part
    ]
    others = {
        canonicalize_name(Requirement(one).name) for package in packages for one in package.requires
    }
    marked = {
        canonicalize_name(one.name): str(one.marker) for one in asked if one.marker is not None
    }
    chosen = (
        Locked(
            one.name,
            str(Version(one.version).public),
            one.requires,
            "" if one.name in others else marked.get(one.name, ""),
        )
        for one in packages
    )
    return sorted(chosen, key=lambda one: one.name)


def closure(wanted: Iterable[str], packages: Iterable[Locked]) -> list[Locked]:
    """Those of the packages that the wanted requirements come to, on all Pythons and systems."""
    known = {one.name: one for one in packages}
    waiting, seen = [Requirement(one) for one in wanted], set[tuple[str, str]]()
    while waiting:
        requirement = waiting.pop()
        package = known.get(canonicalize_name(requirement.name))
        for extra in ("", *sorted(requirement.extras)) if package is not None else ():
            if (package.name, extra) not in seen:
                seen.add((package.name, extra))
                waiting += [
                    one for one in map(Requirement, package.requires) if _applies(one, extra)
                ]
    return [one for one in known.values() if (one.name, "") in seen]


def cuda(index: Index, packages: Iterable[Locked]) -> list[Locked]:
    """What torch as the index has it requires on Linux, beyond what is locked."""
    known = {one.name for one in packages}
    chosen: dict[str, Locked] = {}
    waiting = [Requirement(TORCH)]
    while waiting:
        waiting.sort(
            key=lambda one: "==" in str(one.specifier)
        )  # subtle: what is named in one version decides before what is not
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in chosen:
            continue
        version, requires = index.latest(name, requirement.specifier)
        if name not in known:
            chosen[name] = Locked(name, version.public, tuple(requires))
        for one in map(Requirement, requires):
            extras = ("", *requirement.extras)
            if canonicalize_name(one.name) not in {*known, *chosen} and any(
                _on_linux(one, extra) for extra in extras
            ):
                waiting.append(one)
    return sorted(chosen.values(), key=lambda one: one.name)


def written(packages: Iterable[Locked], index: Index, what: str) -> str:
    """A lock that pip reads with --require-hashes."""
    lines = [
        f"# {what}. Written by scripts/lock.py (make lock); "
        "install with pip install --require-hashes -r."
    ]
    for one in packages:
        pin = f"{one.name}=={one.version}" + (f"; {one.marker}" if one.marker else "")
        lines.append(
            " \\\n".join(
                [
                    pin,
                    *(
                        f"    --hash=sha256:{number}"
                        for number in index.hashes(one.name, one.version)
                    ),
                ]
            )
        )
    return "\n".join(lines) + "\n"


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or any(
        requirement.marker.evaluate(
            {**default_environment(), **system, "python_version": python, "extra": extra}
        )
        for python in ("3.11", "3.12", "3.13", "3.14")
        for system in (
            _LINUX,
            {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
        )
    )


def _on_linux(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate(
        {**default_environment(), **_LINUX, "extra": extra}
    )


def _pins(path: Path, folder: Path) -> Path:
    """The pins of a lock without their hashes, as constraints."""
    lines = [
        line.partition(";")[0].rstrip(" \\")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line[:1].isalnum()
    ]
    pins = folder / "pins.txt"
    pins.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return pins


def main() -> None:
    """Write the locks."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument(
        "--keep", action="store_true", help="keep the versions that are locked now"
    )
    with tempfile.TemporaryDirectory() as folder:
        packages = resolved(_pins(ROOT / FULL, Path(folder)) if options.parse_args().keep else None)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    index = Index()
    core = closure([*project["dependencies"], *_SERVED, *_BUILD], packages)
    for name, chosen, what in (
        (FULL, packages, "Everything: the commands, all extras, the tests"),
        (CORE, core, "What the commands need"),
        (
            CUDA,
            cuda(index, packages),
            "What torch needs besides on Linux, unless it is a build for the CPU",
        ),
        (
            CPU,
            index.builds(*TORCH.split("==")),
            "A build of torch for the CPU, to be installed before the others",
        ),
    ):
        if not chosen:
            print(f"pip knows no such package here: {name} stays as it is")
            continue
        (ROOT / name).write_text(written(chosen, index, what), encoding="utf-8")
        print(f"{len(chosen)} packages written to {name}")


if __name__ == "__main__":
    main()
