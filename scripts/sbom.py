"""Write what seqmix is made of as a CycloneDX bill of materials.

    python scripts/sbom.py sbom.json

Every package of requirements.lock with version, purl, license, the SHA-256 of each of its files
(that of the one you installed is among them) and what it depends on; and the starter models that
come inside seqmix, with theirs. Dependencies and licenses are read from the packages installed
here. No time and no serial number are written, so that the same lock gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from audit import ROOT, Package, license_of, read_hashes, read_lock

LICENSE = "Apache-2.0"
STARTER = ROOT / "src" / "seqmix" / "starter" / "files"
_MODELS = {
    "starter-encoder": (
        "encoder.int8.safetensors",
        "encoder.json",
        "tokenizer.json",
        "types.safetensors",
        "types.json",
    ),
    "starter-lm": ("lm.int8.safetensors", "lm.json", "tokenizer.json"),
}


def bill(
    packages: list[Package], hashes: Mapping[str, Iterable[str]], project: Mapping[str, Any]
) -> dict[str, Any]:
    """The document."""
    seqmix = _component(Package(project["name"], project["version"]), "application", LICENSE)
    packages = sorted(packages, key=lambda one: one.name)
    libraries = [
        _component(one, "library", license_of(one.name), hashes.get(one.name, ()))
        for one in packages
    ]
    models = [_model(name, files, project["version"]) for name, files in _MODELS.items()]
    refs = {one["name"]: one["bom-ref"] for one in libraries}
    extras = {**project["optional-dependencies"], "": project["dependencies"]}
    asked = [Requirement(one) for part in extras.values() for one in part]
    own = sorted({refs[name] for one in asked if (name := canonicalize_name(one.name)) in refs})
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": seqmix},
        "components": [*libraries, *models],
        "dependencies": [
            {
                "ref": seqmix["bom-ref"],
                "dependsOn": [*own, *(model["bom-ref"] for model in models)],
            },
            *({"ref": ref, "dependsOn": needed} for ref, needed in _needed(refs, asked).items()),
            *({"ref": model["bom-ref"], "dependsOn": []} for model in models),
        ],
    }


def _needed(refs: Mapping[str, str], asked: Iterable[Requirement]) -> dict[str, list[str]]:
    """What each package needs here, by its metadata, with the extras that anybody asks of it."""
    requires = {name: [Requirement(one) for one in _requires(name)] for name in refs}
    extras: dict[str, set[str]] = {}
    for one in (*asked, *(one for own in requires.values() for one in own)):
        extras.setdefault(canonicalize_name(one.name), {""}).update(one.extras)
    found = {}
    for name, own in requires.items():
        chosen = [
            one
            for one in own
            if one.marker is None
            or any(one.marker.evaluate({"extra": extra}) for extra in extras.get(name, {""}))
        ]
        found[refs[name]] = sorted(
            {refs[needed] for one in chosen if (needed := canonicalize_name(one.name)) in refs}
            - {refs[name]}
        )
    return found


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def _component(
    package: Package, kind: str, license: str | None, hashes: Iterable[str] = ()
) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name}@{package.version}"
    licensed = {} if license is None else {"licenses": [_license(license)]}
    named = [{"alg": "SHA-256", "content": one} for one in sorted(hashes)]
    about = {
        "type": kind,
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
    }
    return {**about, **({"hashes": named} if named else {}), **licensed}


def _model(name: str, files: Iterable[str], version: str) -> dict[str, Any]:
    """A model that comes inside seqmix; its files are parts of it."""
    parts = [
        {
            "type": "file",
            "bom-ref": f"{name}/{file}",
            "name": file,
            "version": version,
            "hashes": [_hash(STARTER / file)],
        }
        for file in files
    ]
    about = {
        "type": "machine-learning-model",
        "bom-ref": name,
        "name": name,
        "version": version,
        "licenses": [_license(LICENSE)],
    }
    return {**about, "hashes": parts[0]["hashes"], "components": parts}


def _hash(path: Path) -> dict[str, str]:
    with path.open("rb") as content:
        return {"alg": "SHA-256", "content": hashlib.file_digest(content, "sha256").hexdigest()}


def _license(text: str) -> dict[str, Any]:
    """An SPDX expression where it is one, else the name as the package spells it."""
    try:
        return {"expression": canonicalize_license_expression(text)}
    except InvalidLicenseExpression:
        return {"license": {"name": text}}


def main(out: Path) -> None:
    """Write the bill."""
    packages, _ = read_lock()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    out.write_text(
        json.dumps(bill(packages, read_hashes(), project), indent=1) + "\n", encoding="utf-8"
    )
    print(f"{len(packages)} packages and {len(_MODELS)} models written to {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sbom.json"))
