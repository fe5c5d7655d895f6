"""The audit of what we depend on finds what it should, and the bill of materials is one that others can read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from audit import Advisory, Package, lowest_allowed, problems, read_advisories, read_lock
from sbom import bill

ROOT = Path(__file__).parents[2]
jsonschema = pytest.importorskip("jsonschema", reason="the bill is held against a JSON schema")

# What CycloneDX 1.6 asks of the parts we write; its own schema is larger and refers to others on the net.
LICENSE = {
    "oneOf": [
        {"required": ["expression"], "properties": {"expression": {"type": "string"}}, "additionalProperties": False},
        {
            "required": ["license"],
            "properties": {"license": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}},
            "additionalProperties": False,
        },
    ]
}
COMPONENT = {
    "type": "object",
    "required": ["type", "name", "version", "purl", "bom-ref", "licenses"],
    "properties": {
        "type": {"enum": ["application", "framework", "library"]},
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
        "metadata": {"type": "object", "required": ["component"], "properties": {"component": COMPONENT}, "additionalProperties": False},
        "components": {"type": "array", "items": COMPONENT, "uniqueItems": True},
        "dependencies": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ref"],
                "properties": {"ref": {"type": "string"}, "dependsOn": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


def test_what_we_depend_on_is_pinned_licensed_and_not_known_to_be_weak() -> None:
    found = subprocess.run([sys.executable, ROOT / "scripts" / "audit.py"], capture_output=True, text=True)

    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.startswith("OK: ")


def test_a_weak_version_is_named_where_it_is_pinned_and_where_it_is_let_in() -> None:
    advisories, _ = read_advisories()
    said = list(problems([Package("torch", "2.5.1")], [], [Package("pyarrow", "13.0.0"), Package("pyarrow", "14.0.1")], advisories))

    assert [line.partition(" has ")[0] for line in said] == ["requirements.lock: torch 2.5.1", "pyproject.toml lets in: pyarrow 13.0.0"]
    assert "CVE-2025-32434" in said[0]


def test_an_advisory_knows_its_versions_from_the_next() -> None:
    known = Advisory("X-1", "a", (SpecifierSet("<1.2"), SpecifierSet(">=2,<2.3")), "")

    assert [known.hits(Package("a", version)) for version in ("1.1.9", "1.2", "2.0", "2.3", "2.0rc1")] == [True, False, True, False, False]
    assert not known.hits(Package("b", "1.0"))


def test_a_line_that_pins_nothing_and_a_license_nobody_knows_are_named(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("numpy==2.0.0\nscipy>=1.0  # why not\n# a word\n\nno-such-package-here==1.0; sys_platform == 'linux'\n")
    packages, loose = read_lock(tmp_path / "lock")

    assert packages == [Package("numpy", "2.0.0"), Package("no-such-package-here", "1.0")]
    assert list(problems(packages, loose, [], [])) == [
        "scipy>=1.0: is not pinned to one version",
        "no-such-package-here 1.0: its license is not known here",
    ]


def test_every_package_we_ask_for_is_in_the_lock() -> None:
    locked = {package.name for package in read_lock()[0]}

    assert {package.name for package in lowest_allowed()} <= locked


def test_the_bill_is_cyclonedx_and_names_every_package_of_the_lock() -> None:
    packages, _ = read_lock()
    made = bill(packages, "seqmix", "0.1.0")

    jsonschema.validate(made, SCHEMA)
    assert {(one["name"], one["version"]) for one in made["components"]} == {(one.name, one.version) for one in packages}
    refs = {one["bom-ref"] for one in made["components"]}
    assert set(made["dependencies"][0]["dependsOn"]) == refs and len(refs) == len(packages)
    assert json.dumps(made) == json.dumps(bill(packages[::-1], "seqmix", "0.1.0"))
