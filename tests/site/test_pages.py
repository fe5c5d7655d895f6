"""The pages as written: every link, anchor and name leads somewhere, and no page is forgotten."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seqmix
import seqmix.errors
from build_site import LINK, ROOT, published_pages, python_markdown, site_links

PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        *(ROOT / "experiments").glob("*.md"),
        *(ROOT / "results" / "tables").glob("*.md"),
        *(ROOT / "src").rglob("*.md"),
    }
)
REFERENCE = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")
)
ENTRIES = set(re.findall(r"^::: (\S+)$", REFERENCE, flags=re.M))


def prose(path: Path) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.S)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as repositories and the site derive them."""
    if path.suffix == ".png":
        return {"only-light", "only-dark"}  # in which color scheme the site shows it
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for _, label, target in LINK.findall(prose(page)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = Path(os.path.normpath(page.parent / path)) if path else page
        assert place.exists(), f"[{label}]({target})"
        assert not anchor or anchor in anchors(place), f"[{label}]({target})"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_script_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    for name in re.findall(r"\b(?:tests|bench|scripts)/[\w/]+\.py\b", text):
        assert (ROOT / name).is_file(), name


SEQMIX = ROOT / "src" / "seqmix"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# what the page names as code: `trainer/jobs`, `app/plan.build_learner`, `keys.js`, `Pool.label`
NAME = re.compile(r"`((?:\w+/)*)(\w+)(?:\.(\w+))?`")
WRITTEN = {"results.csv", "rounds.jsonl"}  # by a run


@pytest.mark.parametrize("name", sorted({m[0] for m in NAME.finditer(ARCHITECTURE)}))
def test_what_the_architecture_names_is_there(name: str) -> None:
    folder, module, member = NAME.fullmatch(name).groups()  # type: ignore[union-attr]
    if name.strip("`") in WRITTEN or (ROOT / name.strip("`")).exists():
        return
    suffix = ".js" if member == "js" else ".py"
    member = None if member in ("js", "py") else member
    files = [*SEQMIX.rglob(f"{module}{suffix}"), *SEQMIX.rglob(f"{module}/__init__.py")]
    files = [file for file in files if f"/{folder}{module}" in file.as_posix()]
    if not files and not folder:  # a class, a function or a constant
        files = [path for path in SEQMIX.rglob("*.py") if defines(path, module)]

    assert files, f"there is no {name}"
    assert member is None or any(defines(file, member) for file in files), name


def defines(path: Path, name: str) -> bool:
    pattern = rf"^ *(?:(?:async )?def|class) {name}\b|^{name}\b"
    return re.search(pattern, path.read_text(encoding="utf-8"), flags=re.M) is not None


def test_the_wings_of_serve_import_what_the_architecture_says() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .*? \| ([^|]*) \|$", ARCHITECTURE, flags=re.M)
    said = {wing: set(re.findall(r"`(\w+)`", others)) for wing, others in rows}
    wings = {path.parent.name for path in (SEQMIX / "serve").glob("*/__init__.py")}
    imported = {
        wing: {
            name
            for path in (SEQMIX / "serve" / wing).rglob("*.py")
            for name in re.findall(r"\bseqmix\.serve\.(\w+)", path.read_text(encoding="utf-8"))
            if name in wings - {wing}
        }
        for wing in wings
    }

    assert said == imported


def targets(nav: Any) -> Iterator[str]:
    """The pages of a navigation, in order."""
    if isinstance(nav, str):
        yield nav
        return
    for entry in nav.values() if isinstance(nav, dict) else nav:
        yield from targets(entry)


def test_every_page_is_in_the_navigation_once() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    listed = list(targets(config["project"]["nav"]))
    pages = {str(place) for place in published_pages().values() if place.suffix == ".md"}
    named = {page for page in pages if not page.startswith("tables/")} | {"tables/all.md"}

    assert sorted(listed) == sorted(named)


def public_names() -> set[str]:
    """What `import seqmix` gives, and what else a package lists in `__all__`."""
    short = set(seqmix.__all__) - {"__version__"}
    names = {f"seqmix.{name}" for name in short}
    for path in (ROOT / "src" / "seqmix").rglob("__init__.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                module = ".".join(path.parent.relative_to(ROOT / "src").parts)
                listed = set(ast.literal_eval(node.value)) - set(seqmix.__all__)
                names |= {f"{module}.{name}" for name in listed}
    return names


def test_every_public_name_has_an_entry_in_the_reference() -> None:
    errors = {f"seqmix.{name}" for name in dir(seqmix.errors)}  # on the page of their module

    assert public_names() - errors - ENTRIES == set()
    assert {"seqmix.errors", "seqmix.protocols", "seqmix.testing"} <= ENTRIES


def test_the_overview_of_the_reference_names_what_seqmix_gives() -> None:
    overview = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")

    for name in set(seqmix.__all__) - {"__version__"}:
        assert f"`{name}`" in overview


def test_pages_become_what_the_site_needs() -> None:
    page = "Two things:\n1. one\n\n   more\n2. two\n```console\n- kept\n```\n"
    pages = {Path("docs/a.md"): Path("a.md"), Path("SECURITY.md"): Path("security.md")}
    links = "[safe](../SECURITY.md#reporting), [`a test`](../tests/x.py), `[x](../SECURITY.md)`"

    assert python_markdown(page) == (
        "Two things:\n\n1. one\n\n    more\n\n2. two\n```bash\n- kept\n```\n"
    )
    assert site_links(links, Path("docs/a.md"), pages) == (
        "[safe](security.md#reporting), `a test`, `[x](../SECURITY.md)`"
    )


def test_doctests_become_code() -> None:
    pytest.importorskip("griffe", reason="the site needs the extra docs")
    from doctest_blocks import fenced

    text = "Add.\n\n    >>> 1 + 1\n    2\n\n    More.\n"

    assert fenced(text) == "Add.\n\n    ```pycon\n    >>> 1 + 1\n    2\n    ```\n\n    More.\n"
