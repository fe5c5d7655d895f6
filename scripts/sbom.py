"""Write what seqmix is made of as a CycloneDX bill of materials: every package of requirements.lock with version, purl and license.

    python scripts/sbom.py sbom.json

No time and no serial number are written, so that the same lock gives the same bytes. Installed metadata holds no hash of the file a
package came from, so there are none.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from audit import ROOT, Package, license_of, read_lock
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression


def bill(packages: list[Package], name: str, version: str) -> dict[str, Any]:
    """The document."""
    own = _component(Package(name, version), "application", "Apache-2.0")
    parts = [_component(package, "library", license_of(package.name)) for package in sorted(packages, key=lambda one: one.name)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def _component(package: Package, kind: str, license: str | None) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name}@{package.version}"
    licensed = {} if license is None else {"licenses": [_license(license)]}
    return {"type": kind, "bom-ref": purl, "name": package.name, "version": package.version, "purl": purl, **licensed}


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
    out.write_text(json.dumps(bill(packages, project["name"], project["version"]), indent=1) + "\n", encoding="utf-8")
    print(f"{len(packages)} packages written to {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sbom.json"))
