"""One generated pair told as the paper's case study does: parents with windows marked, λ, mixed tokens and labels, scores, verdict."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seqmix.data.augmented import Augmented
from seqmix.data.sentence import Row, Sentence

_NAMES = "ijklmn"


@dataclass(frozen=True)
class Case:
    """The candidates that one pair gave, with their parents."""

    parents: tuple[Sentence, ...]
    candidates: tuple[Augmented, ...]


def cases(made: Iterable[Augmented], sentences: Iterable[Sentence]) -> list[Case]:
    """Candidates of one pair together, in the order in which the pairs came."""
    by_id = {sentence.id: sentence for sentence in sentences}
    grouped: dict[object, list[Augmented]] = {}
    for one in made:
        grouped.setdefault((one.lineage.parents, one.lineage.windows), []).append(one)
    return [
        Case(
            tuple(by_id[id] for id in own[0].lineage.parents),
            tuple(sorted(own, key=lambda a: a.lineage.into)),
        )
        for own in grouped.values()
    ]


def as_text(case: Case) -> str:
    """The case in plain text, windows in brackets."""
    lineage = case.candidates[0].lineage
    lines = []
    for name, parent, window in zip(_NAMES, case.parents, lineage.windows, strict=False):
        lines.append(f"sequence {name}  ({parent.id})")
        lines.append("  " + _marked(parent.tokens, window))
    if lineage.weight is not None:
        lines.append(f"mixed with λ = {lineage.weight:.2f}, 1 − λ = {1 - lineage.weight:.2f}")
        lines += _grid(_table(case))
    for name, made in zip(_NAMES, case.candidates, strict=False):
        lines.append(
            f"generated {_NAMES[made.lineage.into] if len(case.candidates) > 1 else name}: {verdict(made)}"
        )
        lines.append("  " + _marked(made.sentence.tokens, window_of(made)))
    return "\n".join(lines)


def as_page(told: Sequence[Case], title: str) -> str:
    """All cases as one HTML page that needs nothing else."""
    return _PAGE.format(
        title=html.escape(title),
        style=STYLE,
        count=len(told),
        body="\n".join(card(number, case) for number, case in enumerate(told, 1)),
    )


def label(row: Row) -> str:
    """B-ORG, or B-LOC 0.61 B-ORG 0.39, or – where there is none."""
    if row is None:
        return "–"
    return (
        row
        if isinstance(row, str)
        else " ".join(
            f"{tag} {weight:.2f}" for tag, weight in sorted(row.items(), key=lambda p: -p[1])
        )
    )


def window_of(made: Augmented) -> tuple[int, int]:
    """Where the new words stand: as wide as the window, or as the mention that was put in."""
    start, end = made.lineage.windows[made.lineage.into]
    if made.lineage.method == "mention":
        source = made.lineage.windows[1]
        end = start + source[1] - source[0]
    return start, end


def verdict(made: Augmented) -> str:
    """The score and what came of it."""
    if made.lineage.score is None:
        return "kept, not scored"
    base = "" if made.lineage.base == "e" else f" (base {made.lineage.base})"
    shown = (
        "beyond the range" if made.lineage.score == float("inf") else f"{made.lineage.score:.0f}"
    )
    return f"perplexity {shown}{base}, {'kept' if made.kept else 'rejected'}"


def _table(case: Case) -> list[list[str]]:
    """Rows of the mixing: each parent's tokens and tags, the mixed tokens and tags, the distances."""
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
    """One case as an <article>; `STYLE` holds what it needs."""
    lineage = case.candidates[0].lineage
    parts = [f"<article><h2>{html.escape(str(heading))}</h2>"]
    for name, parent, window in zip(_NAMES, case.parents, lineage.windows, strict=False):
        parts.append(
            f"<p><b>{name}</b> {html_marked(parent.tokens, window)} <small>{html.escape(parent.id)}</small></p>"
        )
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
    for made in case.candidates:
        judged = "kept" if made.kept else "rejected"
        shown = html_marked(made.sentence.tokens, window_of(made))
        parts.append(
            f"<p class={judged}><b>{_NAMES[made.lineage.into]}′</b> {shown} <small>{html.escape(verdict(made))}</small></p>"
        )
    return "".join([*parts, "</article>"])


def html_marked(tokens: Sequence[str], window: tuple[int, int]) -> str:
    """The tokens as HTML, those in the window marked."""
    start, end = window
    return " ".join(
        f"<mark>{html.escape(token)}</mark>" if start <= at < end else html.escape(token)
        for at, token in enumerate(tokens)
    )


STYLE = """\
:root { color-scheme: light dark; --line: #8884; --mark: #ffd54f66; --good: #2e7d32; --bad: #c62828 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
article { border: 1px solid var(--line); border-radius: .6rem; padding: .4rem 1.2rem; margin: 1rem 0 }
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
<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
{style}</style>
<h1>{title}</h1>
<p>{count} pairs. Marked: the windows that were mixed. A green bar: kept; a red one: rejected by the discriminator.</p>
{body}
</html>
"""
