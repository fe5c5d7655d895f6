"""Tables, numbers and paragraphs of the report as HTML, and the page around them."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from seqmix.data.overwriting import other_file
from seqmix.report.statistics import Interval


def refuse_other_file(path: Path) -> None:
    """Refuse to write a page over a file that is none."""
    if path.is_file() and not path.read_bytes().startswith(PAGE[:9].encode()):
        raise other_file(path, "a page")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are HTML, its headings text."""
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    rows_html = f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody>"
    return f"<div class=wide><table class=figures>{rows_html}</table></div>"


def interval(value: Interval, signed: bool = False) -> str:
    """Return a mean with its interval, if it is known."""
    show: Callable[[float], str] = (lambda v: with_sign(v, 3)) if signed else (lambda v: f"{v:.3f}")
    bounds = f" <small>[{show(value.low)}, {show(value.high)}]</small>" if value.known else ""
    return f"<b>{show(value.mean)}</b>{bounds}"


def with_sign(value: float, digits: int) -> str:
    """Return `+0.012` or `−0.012`, with a true minus sign and no negative zero."""
    shown = f"{value:+.{digits}f}"
    return shown.replace("-", "−") if float(shown) else f"{0:.{digits}f}"


def p_value(value: float) -> str:
    """Return p with three digits, or a dash where no test was possible."""
    return "–" if math.isnan(value) else "&lt; 0.001" if value < 0.001 else f"{value:.3f}"


def many(n: int, what: str) -> str:
    """Return `1 run` or `2 runs`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def note(sentences: Sequence[str]) -> str:
    """Return a paragraph in small print."""
    return f"<p class=note>{' '.join(sentences)}</p>"


PAGE_STYLE = """\
body { line-height: 1.5 }
h1 { margin-bottom: .2rem }
section { margin: 2.2rem 0 }
section > h2 { font-size: 1.25rem; opacity: 1; margin: 0 0 .6rem }
.figures { width: 100%; font-variant-numeric: tabular-nums }
.figures th { text-align: left; font-weight: 600; font-size: .8rem; opacity: .7 }
.figures th { padding: .2rem 1rem .35rem 0; vertical-align: bottom }
.figures td, .figures tr:nth-child(even) td
{ padding: .35rem 1rem .35rem 0; opacity: 1; border-bottom: 0; border-top: 1px solid var(--line) }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .5em }
.note, figcaption { font-size: .85rem; opacity: .7 }
figure { margin: .6rem 0 }
figure svg { display: block; width: 100%; height: auto; min-width: 20rem }
figure[data-large] svg { max-width: 50rem }
.pair { display: grid; gap: .5rem 2rem }
.pair { grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)) }
summary { cursor: pointer; opacity: .8 }
@media print { section, article, figure { break-inside: avoid } }
"""

PAGE = """<!doctype html>
<html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1"><title>seqmix report</title>
<style>
{style}</style>
<h1>Active learning report</h1>
<p>{lead}</p>
{body}
</html>
"""
