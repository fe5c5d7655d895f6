"""The site as it is built: complete, without a dead link, and without a request to anybody."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from build_site import ELSEWHERE
from tests.site.test_pages import public_names
from tests.support import ROOT

pytestmark = pytest.mark.ci
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ELSEWHERE_URL = re.compile(r"^(https?:)?//")


class Page(HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids, self.links, self.loads = set[str](), list[str](), list[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a":
            self.links += [values["href"]] if "href" in values else []
        else:
            self.loads += [values[name] for name in ("src", "href") if name in values]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy, so that the clone stays as it is."""
    pytest.importorskip("zensical", reason="the site needs the extra docs")
    copy = tmp_path_factory.mktemp("clone")
    for name in ("docs", "results/tables", "scripts"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("zensical.toml", *ELSEWHERE):
        if (ROOT / name).is_file() and not name.startswith("src/"):
            (copy / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    (copy / "src").symlink_to(ROOT / "src")
    words = [sys.executable, copy / "scripts" / "build_site.py"]
    built = subprocess.run(words, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "No issues found" in built.stdout + built.stderr
    return copy / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_link_leads_to_a_page_and_an_anchor_of_the_site(pages: dict[Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            target, _, anchor = link.partition("#")
            if path.name == "404.html" or re.match(r"[a-z]+:|//", link):
                continue
            place = (path.parent / target).resolve() if target else path
            place = place / "index.html" if place.is_dir() else place
            there = place.is_file() and (
                not anchor or place not in pages or anchor in pages[place].ids
            )
            dead += [] if there else [f"{path.name}: {link}"]

    assert len(pages) > 40 and dead == []


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    loads = [load for page in pages.values() for load in page.loads if ELSEWHERE_URL.match(load)]
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        loads += re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)]*)|@import\s+['\"](\S*)", text)

    assert loads == []


def test_no_list_or_table_is_left_as_text(pages: dict[Path, Page]) -> None:
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for paragraph in re.findall(r"<p>(.*?)</p>", text, flags=re.S):
            assert not re.search(r"^(- |\d+\. |\|)", paragraph, flags=re.M), f"{path}: {paragraph}"


def test_every_public_name_is_in_the_inventory(site: Path) -> None:
    inventory = (site / "objects.inv").read_bytes()
    text = zlib.decompress(inventory[inventory.index(b"zlib.\n") + 6 :]).decode()

    assert public_names() - {line.split(" ")[0] for line in text.splitlines()} == set()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_opened_from_a_folder_it_asks_nobody_and_its_search_finds(
    scheme: str, site: Path, browser: object
) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 844})  # type: ignore[attr-defined]
    asked, wrong = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    for name in ("index", "cli", "results", "api/tagger", "tutorials/names"):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.wait_for_timeout(300)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("conlleval")
    page.get_by_text(re.compile(r"^\d+ results$")).wait_for(timeout=5000)

    assert sum(map(int, re.findall(r"\d+", ground)[:3])) > 600 if scheme == "light" else True
    assert sum(map(int, re.findall(r"\d+", ground)[:3])) < 200 if scheme == "dark" else True
    assert [url for url in asked if not url.startswith("file:")] == [] and wrong == []
