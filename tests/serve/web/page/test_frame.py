"""Every page begins with the same lines, since each is a whole file without a template."""

from __future__ import annotations

import re

from tests.serve.web.page.test_page_modules import PAGE

# what a page adds: its style, its script, where its skip link leads, its help
ADDED = re.compile(r'rel="stylesheet"|type="module"|class="skip-link"|id="open-help"')


def test_all_pages_have_one_frame() -> None:
    frames = {
        path.name: [
            line
            for line in path.read_text(encoding="utf-8").partition("<main")[0].splitlines()
            if not ADDED.search(line)
        ]
        for path in sorted(PAGE.glob("*.html"))
    }

    assert len(frames) >= 7
    assert {name: frame for name, frame in frames.items() if frame != frames["index.html"]} == {}
