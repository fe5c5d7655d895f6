"""The audit of what we depend on finds what it should; others can read the bill of materials."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import lock
from audit import (
    Advisory,
    Package,
    lock_problems,
    lowest_allowed,
    months_since,
    problems,
    read_advisories,
    read_hashes,
    read_lock,
)
from lock import Locked, closure, version_of, with_markers
from sbom import STARTER, bill

ROOT = Path(__file__).parents[2]
jsonschema = pytest.importorskip("jsonschema", reason="the bill is held against a JSON schema")

# What CycloneDX 1.6 asks of the parts we write; its own schema is larger and refers to the net.
LICENSE = {
    "oneOf": [
        {
            "required": ["expression"],
            "properties": {"expression": {"type": "string"}},
            "additionalProperties": False,
        },
        {
            "required": ["license"],
            "properties": {
                "license": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string", "minLength": 1}},
                }
            },
            "additionalProperties": False,
        },
    ]
}
HASHES = {
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {
        "type": "object",
        "required": ["alg", "content"],
        "properties": {
            "alg": {"const": "SHA-256"},
            "content": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
        "additionalProperties": False,
    },
}
COMPONENT = {
    "type": "object",
    "required": ["type", "name", "version", "bom-ref"],
    "properties": {
        "type": {"enum": ["application", "framework", "library", "machine-learning-model", "file"]},
        "hashes": HASHES,
        "components": {"type": "array"},
        "name": {"type": "string", "minLength": 1},
        "version": {"type": "string", "minLength": 1},
        "purl": {"type": "string", "pattern": "^pkg:pypi/[a-z0-9-]+@[^@ ]+$"},
        "bom-ref": {"type": "string", "minLength": 1},
        "licenses": {"type": "array", "minItems": 1, "items": LICENSE},
    },
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "required": ["bomFormat", "specVersion", "version", "metadata", "components", "dependencies"],
    "properties": {
        "$schema": {"const": "http://cyclonedx.org/schema/bom-1.6.schema.json"},
        "bomFormat": {"const": "CycloneDX"},
        "specVersion": {"const": "1.6"},
        "version": {"type": "integer", "minimum": 1},
        "metadata": {
            "type": "object",
            "required": ["component"],
            "properties": {"component": COMPONENT},
            "additionalProperties": False,
        },
        "components": {"type": "array", "items": COMPONENT, "uniqueItems": True},
        "dependencies": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ref"],
                "properties": {
                    "ref": {"type": "string"},
                    "dependsOn": {
                        "type": "array",
                        "items": {"type": "string"},
                        "uniqueItems": True,
                    },
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


def test_what_we_depend_on_is_pinned_licensed_and_not_known_to_be_weak() -> None:
    found = subprocess.run(
        [sys.executable, ROOT / "scripts" / "audit.py"], capture_output=True, text=True
    )

    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.startswith("OK: ")


def test_a_weak_version_is_named_where_it_is_pinned_and_where_it_is_let_in() -> None:
    advisories, _ = read_advisories()
    said = list(
        problems(
            [Package("torch", "2.5.1")],
            [],
            [Package("pyarrow", "13.0.0"), Package("pyarrow", "14.0.1")],
            advisories,
        )
    )

    assert [line.partition(" has ")[0] for line in said] == [
        "requirements.lock: torch 2.5.1",
        "pyproject.toml lets in: pyarrow 13.0.0",
    ]
    assert "CVE-2025-32434" in said[0]


def test_an_advisory_knows_its_versions_from_the_next() -> None:
    known = Advisory("X-1", "a", (SpecifierSet("<1.2"), SpecifierSet(">=2,<2.3")), "")

    assert [
        known.hits(Package("a", version)) for version in ("1.1.9", "1.2", "2.0", "2.3", "2.0rc1")
    ] == [True, False, True, False, False]
    assert not known.hits(Package("b", "1.0"))


def test_a_line_that_pins_nothing_and_a_license_nobody_knows_are_named(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(
        "numpy==2.0.0\nscipy>=1.0  # why not\n# a word\n\n"
        "no-such-package-here==1.0; sys_platform == 'linux'\n"
    )
    packages, loose = read_lock(tmp_path / "lock")

    assert packages == [Package("numpy", "2.0.0"), Package("no-such-package-here", "1.0")]
    assert list(problems(packages, loose, [], [])) == [
        "scipy>=1.0: is not pinned to one version",
        "no-such-package-here 1.0: its license is not known here",
    ]


def test_every_package_we_ask_for_is_in_the_lock() -> None:
    locked = {package.name for package in read_lock()[0]}

    assert {package.name for package in lowest_allowed()} <= locked


def test_every_pin_has_the_hashes_of_its_files_and_the_core_is_part_of_the_whole(
    tmp_path: Path,
) -> None:
    assert list(lock_problems()) == []
    hashes = read_hashes()
    assert set(hashes) == {package.name for package in read_lock()[0]}
    torch = read_hashes(ROOT / "requirements-cpu.lock")["torch"]
    assert len(hashes["torch"]) > 10 and set(torch) <= set(hashes["torch"]), (
        "the index's files of all systems, and the build for the CPU"
    )

    whole, core = tmp_path / "whole", tmp_path / "core"
    whole.write_text(f"a==1.0 \\\n    --hash=sha256:{'0' * 64}\nb==2.0\n")
    core.write_text(
        f"a==1.1 \\\n    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{'1' * 64}\nc>=1\n"
    )
    assert read_hashes(core) == {"a": ["0" * 64, "1" * 64]}
    assert list(lock_problems(whole, core, ())) == [
        "whole: b has no hash; run make lock",
        "core: c>=1: is not pinned to one version",
        "core: a 1.1 is not in whole",
    ]


def test_the_core_is_what_its_packages_need_on_any_system_and_no_more() -> None:
    packages = [
        Locked(
            "a",
            "1",
            (
                "B>=1",
                'c; extra == "more"',
                'd; python_version >= "3.13"',
                'e; sys_platform == "win32"',
            ),
        ),
        *(Locked(name, "1") for name in "bcde"),
        Locked("f", "1", ('a[more]; sys_platform == "darwin"',)),
    ]

    assert [one.name for one in closure(["a>=1"], packages)] == ["a", "b", "d"]
    assert [one.name for one in closure(["f"], packages)] == ["a", "b", "c", "d", "f"]


def test_files_of_a_version_are_known_by_their_names_and_markers_are_kept() -> None:
    names = (
        "my_tool-1.0-py3-none-any.whl",
        "my-tool-1.0.tar.gz",
        "my_tool-1.0+cpu-py3-none-any.whl",
        "my_tool_2-1.0.tar.gz",
        "notes.txt",
    )
    assert [str(version_of(name, "My.Tool")) for name in names] == [
        "1.0",
        "1.0",
        "1.0+cpu",
        "None",
        "None",
    ]
    project = {
        "dependencies": ["b"],
        "optional-dependencies": {
            "x": ["a>=1; sys_platform == 'linux'", "c; sys_platform == 'linux'"]
        },
    }

    marked = with_markers(
        [Locked("c", "1"), Locked("b", "2+cpu", ("c",)), Locked("a", "1")], project
    )

    assert [(one.name, one.version, one.marker) for one in marked] == [
        ("a", "1", 'sys_platform == "linux"'),
        ("b", "2", ""),
        ("c", "1", ""),
    ]


def test_a_lock_is_written_as_pip_reads_it_and_says_no_place(tmp_path: Path) -> None:
    wheel = tmp_path / "a-1.0+cpu-py3-none-any.whl"
    wheel.write_bytes(b"wheel")

    class Folder(lock.Index):
        def __init__(self) -> None:
            pass

        def files(self, name: str) -> Any:
            yield Version("1.0"), lock.File("a-1.0.tar.gz", "https://index/a-1.0.tar.gz", "1" * 64)
            yield Version("1.0+cpu"), lock.File(wheel.name, wheel.as_uri(), None)
            yield Version("1.1"), lock.File("a-1.1.tar.gz", "https://index/a-1.1.tar.gz", "2" * 64)

    text = lock.written([Locked("a", "1.0", (), 'sys_platform == "linux"')], Folder(), "All")

    (tmp_path / "lock").write_text(text)
    assert read_lock(tmp_path / "lock") == ([Package("a", "1.0")], [])
    assert read_hashes(tmp_path / "lock") == {"a": sorted(["1" * 64, sha256(b"wheel").hexdigest()])}
    assert [one.version for one in Folder().builds("a", "1.0")] == ["1.0+cpu"]
    assert "index" not in text and str(tmp_path) not in text


@pytest.mark.parametrize(
    ("today", "months"),
    [
        (date(2025, 12, 31), 0),
        (date(2026, 1, 1), 1),
        (date(2026, 11, 16), 11),
        (date(2027, 2, 1), 14),
    ],
)
def test_the_age_of_the_advisories_is_known_and_old_ones_are_wrong_before_a_release(
    today: date, months: int
) -> None:
    assert months_since("2025-12", today) == months


def test_the_audit_says_how_old_its_list_is() -> None:
    _, as_of = read_advisories()
    found = subprocess.run(
        [sys.executable, ROOT / "scripts" / "audit.py"], capture_output=True, text=True
    )
    release = subprocess.run(
        [sys.executable, ROOT / "scripts" / "audit.py", "--release"], capture_output=True, text=True
    )

    age = months_since(as_of, datetime.now(UTC).date())
    assert f"the list of advisories is of {as_of}, {age} months old" in found.stdout
    assert release.returncode == (age > 6) and f"{age} months old" in release.stdout


def test_the_page_on_reliability_counts_what_the_audit_counts() -> None:
    packages, advisories = len(read_lock()[0]), len(read_advisories()[0])

    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert (
        f"{packages} packages pinned with hashes and licensed, "
        f"none affected by {advisories} advisories"
    ) in page


def test_the_bill_is_cyclonedx_and_names_every_package_and_model() -> None:
    packages, _ = read_lock()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    made = bill(packages, read_hashes(), project)

    jsonschema.validate(made, SCHEMA)
    libraries = [one for one in made["components"] if one["type"] == "library"]
    assert {(one["name"], one["version"]) for one in libraries} == {
        (one.name, one.version) for one in packages
    }
    assert all(one["hashes"] and one["licenses"] and one["purl"] for one in libraries)
    models = {
        one["name"]: one for one in made["components"] if one["type"] == "machine-learning-model"
    }
    assert set(models) == {"starter-encoder", "starter-lm"} and all(
        one["licenses"] for one in models.values()
    )
    weights = sha256((STARTER / "lm.int8.safetensors").read_bytes()).hexdigest()
    assert models["starter-lm"]["hashes"][0]["content"] == weights
    needs = {
        one["ref"].partition("@")[0].removeprefix("pkg:pypi/"): one["dependsOn"]
        for one in made["dependencies"]
    }
    refs = {one["bom-ref"] for one in made["components"]}
    assert (
        set(needs) == {"seqmix", *models, *(one["name"] for one in libraries)}
        and {ref for own in needs.values() for ref in own} <= refs
    )
    assert {"starter-encoder", "starter-lm"} <= set(needs["seqmix"]) and any(
        "tokenizers@" in ref for ref in needs["transformers"]
    )
    assert any("psycopg-binary@" in ref for ref in needs["psycopg"]), "by an extra that we ask for"
    assert json.dumps(made) == json.dumps(bill(packages[::-1], read_hashes(), project))
