"""The page in one table: on each data set what SeqMix adds, what extra steps add, and what the recipe adds."""

from __future__ import annotations

from results_best import RECIPES, by_data, compared
from results_numbers import Difference, area, compare, f1_at
from results_sections import NAMES, Page, differences
from results_words import signed, table

TEN = "none at 10 epochs"
LEGEND = (
    "F1 points on test, means over the seeds. "
    "**Bold**: shown, in the sense given below; the rows on SeqMix and on the recipe alone are marked. "
    "In italics the paper's own figure, of a larger encoder, for GENIA-2011 that of ACE05, whose place it takes."
)


def glance(page: Page) -> str:
    """One column a data set; nothing where nothing is measured."""
    columns: dict[str, dict[str, str]] = {}
    for name, m in sorted(page.measured.items(), key=lambda one: [*NAMES, one[1].data].index(one[1].data)):
        if name.endswith("-main") and m.made and not m.begun and {"sub", "none", TEN} <= m.arms.keys():
            columns[m.data] = {"labeled sentences at the start": f"{m.sizes[0]:,}"}
            tested = differences(m, {arm: "none" for arm in m.arms if arm != "none"})
            measures = {"at the start": f1_at(m.sizes[0]), "over the whole curve": area(m.sizes)}
            theirs = [heights[0] for heights in page.paper.get(name, {}).get("test", {}).values()]
            seeds = set.intersection(*(set(m.arms[arm].runs) for arm in ("sub", "none", TEN)))
            sub, none, ten = (m.arms[arm].only(seeds) for arm in ("sub", "none", TEN))
            for (where, measure), family in zip(measures.items(), tested, strict=True):
                paper = f" *({signed(theirs[1] - theirs[0])})*" if where == "at the start" and len(theirs) == 2 else ""
                columns[m.data] |= {
                    f"as the paper compares, {where}: `sub` over 10 epochs of `none`": signed(compare(sub, ten, measure).mean) + paper,
                    f"– of that extra steps: `none` over 10 epochs of `none`, {where}": signed(compare(none, ten, measure).mean),
                    f"– of that SeqMix: `sub` over step-matched `none`, {where}": _marked(compare(sub, none, measure), family["sub"]),
                }
    if page.arms("best"):
        best = page.measured["best"]
        size = best.sizes[0]
        for data, arms in by_data(best).items():
            found = compared(arms, RECIPES, size)
            over, part = found.get("`best` over `none`"), found.get("`best` over `best without SeqMix`")
            if over is not None and part is not None:
                cells = columns.setdefault(data, {})
                cells[f"the recipe `best` over `none` with as many steps, at {size:,}"] = _marked(over, over)
                cells[f"– of that SeqMix: over the recipe without it, at {size:,}"] = _marked(part, part)
    labels = list(dict.fromkeys(label for cells in columns.values() for label in cells))
    rows = [[label, *(cells.get(label, "") for cells in columns.values())] for label in labels]
    return f"{table(['', *(NAMES.get(data, data) for data in columns)], rows)}\n\n{LEGEND}" if rows else ""


def _marked(d: Difference, tested: Difference) -> str:
    return f"**{signed(d.mean)}**" if tested.shown else signed(d.mean)
