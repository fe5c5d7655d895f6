"""The parts of the page that are plain functions, in the browser that runs them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[4] / "src" / "seqmix" / "serve" / "web" / "page"


@pytest.fixture(scope="module")
def run(browser: Any) -> Iterator[Any]:
    """Run a script with the named module in `m`; no server is asked."""
    page = browser.new_page()

    def answer(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        if name:
            route.fulfill(path=PAGE / name, content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html><div id=announce></div>", content_type="text/html")

    page.route("http://page.test/**", answer)
    page.goto("http://page.test/")
    yield lambda module, script, value=None: page.evaluate(
        f"async (value) => {{ const m = await import('/{module}.js'); {script} }}", value
    )
    page.close()


def test_tagging_replaces_what_overlaps_and_keeps_the_rest_in_order(run: Any) -> None:
    script = """
      const spans = [{start: 4, end: 6, tag: "LOC", confidence: .8}, {start: 0, end: 2, tag: "PER", confidence: .9}];
      let state = m.opened({suggestion: {spans}});
      state = m.tagged(state, 1, 4, "ORG");
      return state.marks.map(({start, end, tag, confidence}) => [start, end, tag, confidence]);
    """
    assert run("marks", script) == [[1, 4, "ORG", None], [4, 6, "LOC", 0.8]]


def test_a_tag_on_one_token_of_a_mark_means_the_whole_mark(run: Any) -> None:
    script = 'return m.tagged({marks: [{start: 2, end: 5, tag: "PER", confidence: .4}], sure: null}, 3, 4, "LOC").marks;'
    assert run("marks", script) == [{"start": 2, "end": 5, "tag": "LOC", "confidence": None}]


def test_only_marks_inside_the_sure_part_are_sent(run: Any) -> None:
    script = """
      let state = {marks: [{start: 0, end: 1, tag: "PER", confidence: .5}, {start: 3, end: 5, tag: "LOC", confidence: .5}], sure: null};
      state = m.sureOf(state, 4, 6);   // grows to the whole mark
      const part = m.answer(state);
      state = m.tagged(state, 8, 9, "ORG");   // who tags something is sure of it
      return [part, m.answer(state), m.sureOf(m.sureOf(state, 3, 6), 8, 9).sure];
    """
    part, more, none = run("marks", script)
    assert part == {"spans": [{"start": 3, "end": 5, "tag": "LOC"}], "sure": [[3, 6]]}
    assert more["sure"] == [[3, 6], [8, 9]]
    assert none is None


def test_after_any_edits_marks_are_sorted_whole_and_apart(run: Any) -> None:
    rng = random.Random(0)
    edits = [
        (rng.choice("ttttcs"), *sorted(rng.sample(range(20), 2)), rng.choice(["PER", "LOC"]))
        for _ in range(600)
    ]
    script = """
      let state = {marks: [], sure: null};
      return value.map(([what, start, end, tag]) => {
        state = what === "t" ? m.tagged(state, start, end, tag) : what === "c" ? m.cleared(state, start, end) : m.sureOf(state, start, end);
        const {spans, sure} = m.answer(state);
        const all = spans.every((span) => m.isSure(state, span.end - 1));
        return {marks: state.marks.map(({start, end}) => [start, end]), sure, all};
      });
    """
    for state in run("marks", script, edits):
        flat = [at for mark in state["marks"] for at in mark]
        assert all(start < end for start, end in state["marks"])
        assert flat == sorted(flat)
        assert state["all"]
        ranges = state["sure"]
        assert ranges is None or all(a < b for a, b in ranges)
        assert ranges is None or all(one[1] < other[0] for one, other in pairwise(ranges))


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("plain", "plain"),
        ("nul\0byte", "nulNULbyte"),
        ("\u202eevil\u202c", "RLOevilPDF"),
        ("\u200b", "ZWSP"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # a joiner inside a word belongs to the word
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("\ud800", "U+D800"),
        ("", "empty"),
        ("<b>", "<b>"),
    ],
)
def test_what_cannot_be_seen_is_named(run: Any, token: str, shown: str) -> None:
    codes = [
        ord(char) for char in token
    ]  # a lone surrogate does not survive the way to the browser
    script = 'const p = document.createElement("p"); p.append(...m.written(String.fromCodePoint(...value))); return p.textContent;'
    assert run("glyphs", script, codes) == shown


def test_a_token_of_a_megabyte_is_cut_between_characters(run: Any) -> None:
    script = 'const p = document.createElement("p"); p.append(...m.written("x".repeat(199) + "😀".repeat(500000))); return p.textContent;'
    shown = run("glyphs", script)
    assert shown.startswith("x" * 199)
    assert "�" not in shown
    assert len(shown) < 300


def test_each_tag_has_a_key_of_its_own_that_means_nothing_else(run: Any) -> None:
    tags = [{"name": f"T{i}", "key": str(i + 1) if i < 9 else None, "color": i} for i in range(35)]
    keys = [tag["key"] for tag in run("keys", "return m.withKeys(value);", tags)]
    given = [key for key in keys if key]
    assert keys[:9] == list("123456789")
    assert len(set(given)) == len(given) == 29
    assert not set(given) & set("xzspnm")


@pytest.mark.parametrize(
    ("key", "code", "shift", "meant"),
    [
        ("x", "KeyX", False, "x"),
        ("ס", "KeyX", False, "x"),
        ("Я", "KeyZ", True, "Z"),
        ("&", "Digit1", False, "1"),  # in France
        ("?", "Slash", True, "?"),
        ("End", "Numpad1", False, "End"),
    ],
)
def test_keys_mean_the_same_on_keyboards_of_other_scripts(
    run: Any, key: str, code: str, shift: bool, meant: str
) -> None:
    assert (
        run("controls", "return m.typed(value);", {"key": key, "code": code, "shiftKey": shift})
        == meant
    )


def test_guidelines_become_nodes_and_never_markup(run: Any) -> None:
    text = "# Names\n\n- **PER** is `who`\n  and goes on\n- <img src=x onerror=alert(1)>\n\n| a | b |\n|---|---|\n| *1* | 2 |\n\n[link](http://x)\n"
    html = run(
        "markdown",
        'const d = document.createElement("div"); d.append(...m.markdown(value)); return d.innerHTML;',
        text,
    )
    assert "<h3>Names</h3>" in html
    assert "<li><strong>PER</strong> is <code>who</code> and goes on</li>" in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "<td><em>1</em></td>" in html


def test_links_of_guidelines_lead_out_safely_or_stay_text(run: Any) -> None:
    text = "[Guide](https://example.org/a?b=c) and [bad](javascript:alert(1)) and [file](file:///etc/passwd), [rel](/api/next), see http://example.org/x."
    html = run(
        "markdown",
        'const d = document.createElement("div"); d.append(...m.markdown(value)); return d.innerHTML;',
        text,
    )
    assert (
        '<a href="https://example.org/a?b=c" target="_blank" rel="noopener noreferrer">Guide</a> and '
        in html
    )
    assert (
        '<a href="http://example.org/x" target="_blank" rel="noopener noreferrer">http://example.org/x</a>.'
        in html
    )
    assert html.count("<a ") == 2
    assert "bad" in html and "javascript:" in html  # shown as it was written


@pytest.mark.parametrize(
    ("tokens", "given", "direction"),
    [(["שלום"], "auto", "rtl"), (["1", "Oslo"], "auto", "ltr"), (["Oslo"], "rtl", "rtl")],
)
def test_the_direction_is_the_projects_or_that_of_the_first_letter(
    run: Any, tokens: list[str], given: str, direction: str
) -> None:
    assert run("glyphs", "return m.directionOf(...value);", [tokens, given]) == direction


def test_no_file_of_the_page_puts_text_into_markup_or_holds_a_style_or_script_of_its_own() -> None:
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8")
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "https://",
            'style="',
            "<style",
        ):
            assert forbidden not in text, f"{file.name} holds {forbidden}"
        named = text.count("http://www.w3.org/2000/svg") + text.count("http://127.0.0.1:")
        assert text.count("http://") == named, f"{file.name} names a server"
        for script in text.split("<script")[1:] if file.suffix == ".html" else ():
            assert script.partition(">")[0].strip().startswith("src=")
            assert script.partition(">")[2].startswith("</script>")
