"""Build the site of the project into site/, offline and strictly: any warning is an error.

python scripts/build_site.py
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAGE = ROOT / "build" / "docs"  # `docs_dir` of zensical.toml
ELSEWHERE = {  # pages of the site that are not under docs
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples.md",
    "src/seqmix/data/samples/gazette/GUIDELINES.md": "gazette-guidelines.md",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")  # image, label, target
FENCE = re.compile(r"^ *(```|~~~)")
ITEM = re.compile(r"^([-*]|\d+\.) ")


def published_pages() -> dict[Path, Path]:
    """Return the place on the site of each file that is published, both relative."""
    docs = [path for path in (ROOT / "docs").rglob("*") if path.is_file()]
    tables = sorted((ROOT / "results" / "tables").glob("*.md"))
    pages = {path.relative_to(ROOT): path.relative_to(ROOT / "docs") for path in docs}
    pages |= {path.relative_to(ROOT): Path("tables", path.name) for path in tables}
    pages |= {Path(a): Path(b) for a, b in ELSEWHERE.items() if (ROOT / a).is_file()}
    return pages


def python_markdown(text: str) -> str:
    """Return a page as Python-Markdown needs it.

    It wants a blank line before a list and four spaces before what belongs to an item; and it
    shows the commands of a console block as bash, since they have no prompt.
    """
    lines: list[str] = []
    fenced, indent, loose = False, 0, False  # indent: of what belongs to the list item above
    for line in text.split("\n"):
        fenced ^= bool(FENCE.match(line))
        before = lines[-1] if lines else ""
        if (item := ITEM.match(line)) and not fenced:
            apart = loose or not before.startswith(" ")
            lines += [""] if before and apart and not ITEM.match(before) else []
            indent = len(item[0])
        elif line and not line.startswith(" " * indent):
            indent, loose = 0, False
        loose |= indent > 0 and not line
        pad = " " * (4 - indent) if indent and line and not item else ""
        lines.append(pad + line.replace("```console", "```bash"))
    return "\n".join(lines)


def site_links(text: str, source: Path, pages: dict[Path, Path]) -> str:
    """Point the links of a page at the site; a link to a file that is only in the clone is text."""

    def site_link(link: re.Match[str]) -> str:
        image, label, target = link.groups(default="")
        path, _, anchor = target.partition("#")
        if not path or ":" in path:
            return link[0]
        place = Path(os.path.normpath(source.parent / path))
        if place not in pages:
            return link[0] if source.parent == Path("docs") and ".." not in path else label
        to = os.path.relpath(pages[place], pages[source].parent)
        return f"{image}[{label}]({to}{'#' + anchor if anchor else ''})"

    code_or_link = rf"```.*?```|`[^`\n]*`|{LINK.pattern}"  # code keeps its brackets
    return re.sub(code_or_link, site_link, text, flags=re.S)


def write_stage() -> None:
    """Write what the site is built from: the docs, and the pages that are kept elsewhere."""
    shutil.rmtree(STAGE, ignore_errors=True)
    pages = published_pages()
    for source, place in pages.items():
        to = STAGE / place
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = (ROOT / source).read_text(encoding="utf-8")
            to.write_text(site_links(python_markdown(text), source, pages), "utf-8")
        else:
            shutil.copyfile(ROOT / source, to)
    tables = [place for place in pages.values() if place.parts[0] == "tables"]
    lines = [f"- [{place.stem}]({place.name})" for place in tables]
    index = "# Tables\n\nEvery table of the experiments, one page each.\n\n" + "\n".join(lines)
    (STAGE / "tables" / "all.md").write_text(index + "\n", encoding="utf-8")


def main() -> None:
    """Build the site."""
    write_stage()
    shutil.rmtree(ROOT / "site", ignore_errors=True)
    words = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    ended = subprocess.run(words, cwd=ROOT, env=os.environ | {"NO_COLOR": "1"}, check=False)
    sys.exit(ended.returncode)


if __name__ == "__main__":
    main()
