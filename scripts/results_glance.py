"""The page in one table: on each data set what SeqMix adds, what extra steps add, and what the recipe adds."""

from __future__ import annotations

from results_best import recipes
from results_numbers import compare, f1_at, mean_of
from results_sections import NAMES, Page
from results_words import signed, table

TEN = "none at 10 epochs"
LEGEND = (
    "F1 points on test, means over the seeds. **Bold**: shown, in the sense given below; only the recipe over plain training is marked, "
    "what is shown of SeqMix is said under the table. The recipe also reads the text of the pool, which `none` does not, and one adapted "
    "encoder serves all seeds of a data set; `none` has as many tagger steps, a number that was not tuned. "
    "In italics the paper's own figure, of a larger encoder, for GENIA-2011 that of ACE05, whose place it takes."
)


def glance(page: Page) -> str:
    """One column a data set; nothing where nothing is measured."""
    columns: dict[str, dict[str, str]] = {}
    for name, m in sorted(
        page.measured.items(), key=lambda one: [*NAMES, one[1].data].index(one[1].data)
    ):
        if (
            name.endswith("-main")
            and m.made
            and not m.begun
            and {"sub", "none", TEN} <= m.arms.keys()
        ):
            columns[m.data] = {"labeled sentences at the start": f"{m.sizes[0]:,}"}
            measures = {
                "at the start": (f1_at(m.sizes[0]), 1),
                "mean of the points": (mean_of(m.sizes), 2),
            }
            paper = page.paper.get(name, {})
            heights = [points[0] for points in paper.get("test", {}).values()]
            theirs = {"at the start": heights[1] - heights[0]} if len(heights) == 2 else {}
            theirs |= {"mean of the points": paper["mean_gain"]} if "mean_gain" in paper else {}
            seeds = set.intersection(*(set(m.arms[arm].runs) for arm in ("sub", "none", TEN)))
            sub, none, ten = (m.arms[arm].only(seeds) for arm in ("sub", "none", TEN))
            for where, (measure, digits) in measures.items():
                gain, steps, left = (
                    compare(one, two, measure).mean
                    for one, two in ((sub, ten), (none, ten), (sub, none))
                )
                own = f" *({signed(theirs[where], digits)})*" if where in theirs else ""
                columns[m.data] |= {
                    f"as the paper compares, {where}: `sub` over 10 epochs of `none`": signed(
                        gain, digits
                    )
                    + own,
                    f"– of that extra steps: `none` over 10 epochs of `none`, {where}": signed(
                        steps, digits
                    ),
                    f"– of that SeqMix: `sub` over step-matched `none`, {where}": signed(
                        left, digits
                    ),
                }
    if page.arms("best"):
        best = page.measured["best"]
        size = best.sizes[0]
        for data, found in recipes(best).items():
            over, part = (
                found.get("`best` over `none`"),
                found.get("`best` over `best without SeqMix`"),
            )
            if over is not None and part is not None:
                cells = columns.setdefault(data, {})
                cells[
                    f"the recipe `best` over plain training with as many tagger steps, at {size:,}"
                ] = f"**{signed(over.mean)}**" if over.shown else signed(over.mean)
                cells[
                    f"– of that its mixes: half of the replaced mentions swapped for them, at {size:,}"
                ] = signed(part.mean)
    labels = list(dict.fromkeys(label for cells in columns.values() for label in cells))
    rows = [[label, *(cells.get(label, "") for cells in columns.values())] for label in labels]
    return (
        f"{table(['', *(NAMES.get(data, data) for data in columns)], rows)}\n\n{LEGEND}"
        if rows
        else ""
    )
