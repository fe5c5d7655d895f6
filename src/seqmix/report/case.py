"""Show a generated pair as the paper's case study does: parents, mix, scores and verdict."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seqmix.data.augmented import Augmented
from seqmix.data.sentence import Row, Sentence

_NAMES = "ijklmn"


@dataclass(frozen=True)
class Case:
    """The candidates that a pair gave, with their parents."""

    parents: tuple[Sentence, ...]
    candidates: tuple[Augmented, ...]


def cases(candidates: Iterable[Augmented], sentences: Iterable[Sentence]) -> list[Case]:
    """Group candidates by their pair, in the order of the pairs."""
    by_id = {sentence.id: sentence for sentence in sentences}
    grouped: dict[object, list[Augmented]] = {}
    for candidate in candidates:
        lineage = candidate.lineage
        grouped.setdefault((lineage.parents, lineage.windows), []).append(candidate)
    return [
        Case(
            tuple(by_id[id] for id in group[0].lineage.parents),
            tuple(sorted(group, key=lambda candidate: candidate.lineage.into)),
        )
        for group in grouped.values()
    ]


def as_text(case: Case) -> str:
    """Return the case as plain text, with windows in brackets."""
    lineage = case.candidates[0].lineage
    lines = []
    for name, parent, window in zip(_NAMES, case.parents, lineage.windows, strict=False):
        lines.append(f"sequence {name}  ({parent.id})")
        lines.append("  " + _marked(parent.tokens, window))
    if lineage.weight is not None:
        lines.append(f"mixed with λ = {lineage.weight:.2f}, 1 − λ = {1 - lineage.weight:.2f}")
        lines += _grid(_table(case))
    for name, candidate in zip(_NAMES, case.candidates, strict=False):
        into = _NAMES[candidate.lineage.into] if len(case.candidates) > 1 else name
        lines.append(f"generated {into}: {verdict(candidate)}")
        lines.append("  " + _marked(candidate.sentence.tokens, window_of(candidate)))
    return "\n".join(lines)


def as_page(shown: Sequence[Case], title: str) -> str:
    """Return the cases as a self-contained HTML page."""
    return _PAGE.format(
        title=html.escape(title),
        style=STYLE,
        count=len(shown),
        body="\n".join(card(number, case) for number, case in enumerate(shown, 1)),
    )


def label(row: Row) -> str:
    """Return a row as text: `B-ORG`, `B-LOC 0.61 B-ORG 0.39`, or `–` for a missing one."""
    if row is None:
        return "–"
    return (
        row
        if isinstance(row, str)
        else " ".join(
            f"{tag} {weight:.2f}" for tag, weight in sorted(row.items(), key=lambda p: -p[1])
        )
    )


def window_of(candidate: Augmented) -> tuple[int, int]:
    """Return where the new words are: the window, or the mention that was put in."""
    lineage = candidate.lineage
    start, end = lineage.windows[lineage.into]
    if lineage.method == "mention":
        source = lineage.windows[1]
        end = start + source[1] - source[0]
    return start, end


def verdict(candidate: Augmented) -> str:
    """Return the score of a candidate and whether it was kept."""
    lineage = candidate.lineage
    if lineage.score is None:
        return "kept, not scored"
    base = "" if lineage.base == "e" else f" (base {lineage.base})"
    score = "beyond the range" if lineage.score == float("inf") else f"{lineage.score:.0f}"
    return f"perplexity {score}{base}, {'kept' if candidate.kept else 'rejected'}"


def _table(case: Case) -> list[list[str]]:
    """Return the tokens and tags of each parent and of the mix, and the distances, as rows."""
    first = case.candidates[0]
    rows = []
    for name, parent, (start, end) in zip(
        _NAMES, case.parents, first.lineage.windows, strict=False
    ):
        rows.append([name, *parent.tokens[start:end]])
        rows.append(["", *(label(row) for row in parent.tags[start:end])])
    start, end = first.lineage.windows[first.lineage.into]
    rows.append(["mixed", *first.sentence.tokens[start:end]])
    rows.append(["", *(label(row) for row in first.sentence.tags[start:end])])
    rows.append(["distance", *(f"{distance:.2f}" for distance in first.lineage.distances)])
    return rows


def _grid(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _marked(
    tokens: Sequence[str], window: tuple[int, int], open: str = "[", close: str = "]"
) -> str:
    start, end = window
    shown = [*tokens]
    if start < end <= len(shown):
        shown[start], shown[end - 1] = open + shown[start], shown[end - 1] + close
    return " ".join(shown)


def card(heading: int | str, case: Case) -> str:
    """Return a case as an <article>, to be styled by `STYLE`."""
    lineage = case.candidates[0].lineage
    parts = [f"<article><h2>{html.escape(str(heading))}</h2>"]
    for name, parent, window in zip(_NAMES, case.parents, lineage.windows, strict=False):
        marked = html_marked(parent.tokens, window)
        parts.append(f"<p><b>{name}</b> {marked} <small>{html.escape(parent.id)}</small></p>")
    if lineage.weight is not None:
        parts.append(
            f"<p class=weight>λ = {lineage.weight:.2f} · 1 − λ = {1 - lineage.weight:.2f}</p>"
        )
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in _table(case))
        parts.append(
            "<div class=wide><table>"
            + "".join(f"<tr>{row}</tr>" for row in cells)
            + "</table></div>"
        )
    for candidate in case.candidates:
        judged = "kept" if candidate.kept else "rejected"
        marked = html_marked(candidate.sentence.tokens, window_of(candidate))
        parts.append(
            f"<p class={judged}><b>{_NAMES[candidate.lineage.into]}′</b> {marked} "
            f"<small>{html.escape(verdict(candidate))}</small></p>"
        )
    return "".join([*parts, "</article>"])


def html_marked(tokens: Sequence[str], window: tuple[int, int]) -> str:
    """Return the tokens as HTML, with those in the window marked."""
    start, end = window
    return " ".join(
        f"<mark>{html.escape(token)}</mark>" if start <= at < end else html.escape(token)
        for at, token in enumerate(tokens)
    )


STYLE = """\
:root { color-scheme: light dark }
:root { --line: #8884; --mark: #ffd54f66; --good: #2e7d32; --bad: #c62828 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem }
body { margin: 2rem auto; padding: 0 1rem }
article { border: 1px solid var(--line); border-radius: .6rem }
article { padding: .4rem 1.2rem; margin: 1rem 0 }
h2 { font-size: .9rem; opacity: .6; margin: .4rem 0 0 }
p { margin: .5rem 0 }
mark { background: var(--mark); color: inherit; padding: 0 .15em; border-radius: .2em }
small { opacity: .65 }
.weight { font-variant-numeric: tabular-nums }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .9rem }
td { padding: .15rem .7rem .15rem 0; white-space: nowrap }
tr:nth-child(even) td { opacity: .7; border-bottom: 1px solid var(--line) }
.kept, .rejected { border-left: 3px solid var(--good); padding-left: .7rem }
.rejected { border-color: var(--bad); opacity: .75 }
"""

_PAGE = """<!doctype html>
<html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
{style}</style>
<h1>{title}</h1>
<p>{count} pairs. The windows that were mixed are marked.
Green bar: kept; red bar: rejected by the discriminator.</p>
{body}
</html>
"""
