"""The report as a whole: what is on the page, what lies beside it, and what it does with little."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest

from seqmix.errors import DataError
from seqmix.report.page import write_report
from seqmix.report.terminal import terminal_curve
from tests.support.run_folders import PARENTS, run_directory


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        given = dict(attrs)
        self.ids.update([given["id"]] if given.get("id") else [])
        self.links += [
            str(given[name]) for name in ("href", "src", "xlink:href") if given.get(name)
        ]

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def study(folder: Path, seeds: int = 3, rounds: int = 4) -> list[Path]:
    arms = [("nte+sub", 0.03, "sub"), ("nte", 0.0, "none")]
    return [
        run_directory(folder / f"{arm}-{s}", arm, s, rounds, gain, variant)
        for s in range(seeds)
        for arm, gain, variant in arms
    ]


def test_a_study_is_told_with_its_figures_and_tables(tmp_path: Path) -> None:
    folder = write_report(study(tmp_path), tmp_path / "out" / "report.html")

    page = read(tmp_path / "out" / "report.html")
    for heading in (
        "Summary",
        "Against nte",
        "Learning curves",
        "By entity type",
        "Generated sentences",
        "Examples",
        "Time",
    ):
        assert heading in page.text
    assert page.tags["article"] == 10 and page.tags["svg"] == 8
    assert (
        "labels saved" in page.text
        and "Student t" in page.text
        and "F1 on test" in page.text
        and "F1 on dev" in page.text
    )
    names = {
        "acceptance",
        "curve_labeled",
        "curve_minutes",
        "curve_spans",
        "curve_tokens",
        "perplexity",
        "time",
        "types",
    }
    assert folder == tmp_path / "out" / "report_files"
    assert {file.name for file in folder.iterdir()} == {
        *(f"{name}.png" for name in names),
        "curves.csv",
    }
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in folder.glob("*.png"))


def test_generated_sentences_are_counted_once_though_every_round_says_how_many_there_are_so_far(
    tmp_path: Path,
) -> None:
    write_report(study(tmp_path, seeds=2), tmp_path / "report.html")

    assert "160 of 160" in read(tmp_path / "report.html").text


def test_the_page_needs_nothing_from_outside(tmp_path: Path) -> None:
    write_report(study(tmp_path), tmp_path / "report.html")

    page = read(tmp_path / "report.html")
    assert all(link.startswith("#") for link in page.links) and {
        link[1:] for link in page.links
    } <= set(page.ids)
    assert not page.tags["script"] and not page.tags["link"] and not page.tags["img"]
    assert max(page.ids.values()) == 1  # figures do not take each other's parts
    style = (tmp_path / "report.html").read_text()
    assert (
        "color-scheme: light dark" in style
        and "@import" not in style
        and not re.search(r"url\((?!#)", style)
    )


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    runs = study(tmp_path, seeds=2, rounds=2)
    for name in ("a", "b"):
        write_report(runs, tmp_path / name / "report.html")

    for file in (tmp_path / "a").rglob("*.*"):
        if file.is_file():
            assert (
                file.read_bytes()
                == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()
            ), file.name


def test_one_run_is_told_without_tests(tmp_path: Path) -> None:
    write_report([run_directory(tmp_path / "run")], tmp_path / "report.html")

    page = read(tmp_path / "report.html")
    assert (
        "Against" not in page.text
        and "One seed: no interval." in page.text
        and "labels saved" not in page.text
    )
    assert "Generated sentences" not in page.text and "Examples" not in page.text


def test_one_pair_of_runs_has_a_gain_but_no_test(tmp_path: Path) -> None:
    write_report(study(tmp_path, seeds=1), tmp_path / "report.html")

    page = read(tmp_path / "report.html")
    assert "One pair: no test over seeds" in page.text and "nan" not in page.text


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_single_round_on_dev_alone_is_told(tmp_path: Path, seeds: int) -> None:
    runs = [
        run_directory(tmp_path / str(s), "nte+sub", s, rounds=1, variant="sub", test=False)
        for s in range(seeds)
    ]

    write_report(runs, tmp_path / "report.html")

    page = read(tmp_path / "report.html")
    assert (
        "a curve needs two" in page.text
        and "F1 on dev" in page.text
        and "F1 on test" not in page.text
    )


def test_a_split_can_be_asked_for_and_is_refused_where_it_is_missing(tmp_path: Path) -> None:
    runs = study(tmp_path, seeds=1, rounds=2)
    write_report(runs, tmp_path / "report.html", split="dev")

    assert "gain in dev F1" in read(tmp_path / "report.html").text
    with pytest.raises(DataError, match="not every run was scored on test"):
        write_report([run_directory(tmp_path / "x", test=False)], tmp_path / "x.html", split="test")
    assert not (tmp_path / "x.html").exists()


def test_examples_are_told_with_their_parents_when_these_are_given(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", variant="sub", rounds=2)
    write_report([run], tmp_path / "with.html", sentences=PARENTS)
    write_report([run], tmp_path / "without.html")

    assert "distance" in read(tmp_path / "with.html").text
    assert "sub of train:7 and train:9" in read(tmp_path / "without.html").text


def test_text_from_the_runs_is_shown_as_text(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", arm="<script>&$x$_^", variant="sub", rounds=2)
    other = run_directory(tmp_path / "other", rounds=2)

    write_report([run, other], tmp_path / "report.html")

    page = read(tmp_path / "report.html")
    figures = re.findall(r"<svg.*?</svg>", (tmp_path / "report.html").read_text(), re.DOTALL)
    assert not page.tags["script"] and "<script>&$x$_^" in page.text
    assert (
        sum("&lt;script&gt;&amp;$x$_^</text>" in figure for figure in figures) == 8
    )  # as a name, not as a formula


def test_the_callers_settings_are_left_alone(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    write_report([run_directory(tmp_path / "run")], tmp_path / "report.html")

    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(("seeds", "rounds"), [(1, 1), (1, 5), (3, 4)])
def test_the_curve_fits_a_terminal(tmp_path: Path, seeds: int, rounds: int) -> None:
    told = terminal_curve(study(tmp_path, seeds, rounds))

    assert told.startswith("F1 on test\n") and max(map(len, told.splitlines())) <= 80
    assert "● nte+sub" in told and "○ nte " in told
