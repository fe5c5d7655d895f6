"""How numbers are written in docs/results.md: cells, tables, and the phrases that a difference allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from results_numbers import LEVEL, Difference, Family, Series, area, f1_at
from seqmix.report.statistics import Curve, Interval, area_under_curve


def signed(value: float, digits: int = 1) -> str:
    """+2.1, −0.3, 0.0, or a dash for what is not known."""
    if math.isnan(value):
        return "–"
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text if float(text[1:]) else text[1:]


def spread(difference: Difference, digits: int = 1) -> str:
    """+2.1 (+0.2 to +4.6)."""
    interval = difference.interval
    bounds = (
        f" ({signed(interval.low, digits)} to {signed(interval.high, digits)})"
        if interval.known
        else ""
    )
    return signed(interval.mean, digits) + bounds


def p_value(p: float) -> str:
    """Three digits where they matter."""
    if math.isnan(p):
        return "–"
    return (
        "< 0.001"
        if p < 0.001
        else f"{p:.3f}"
        if p < 0.0995
        else f"{min(p, 1):.2f}".replace("1.00", "1")
    )


def score(interval: Interval) -> str:
    """72.4 ± 1.2."""
    if not interval.n:
        return "–"
    return (
        f"{interval.mean:.1f} ± {interval.high - interval.mean:.1f}"
        if interval.known
        else f"{interval.mean:.1f}"
    )


def told(d: Difference) -> str:
    """A difference in a sentence."""
    bounds = (
        f"95 % interval {signed(d.interval.low)} to {signed(d.interval.high)}, "
        if d.interval.known
        else ""
    )
    corrected = f", corrected {p_value(d.holm[0])}" if not math.isnan(d.holm[0]) else ""
    return f"{signed(d.mean)} ({bounds}Wilcoxon p = {p_value(d.wilcoxon)}{corrected}, higher in {d.won} of {d.n} seeds)"


def verdict(d: Difference) -> str:
    """What may be said of it."""
    return (
        ": shown"
        if d.shown
        else ": not shown"
        if d.could_show
        else f": {_too_few(d)} cannot show it"
    )


def _too_few(d: Difference) -> str:
    return f"{d.n} pairs" + (f", corrected over {d.of} comparisons," if d.least_p < LEVEL else "")


def caveat(d: Difference) -> str:
    """When one seed makes the mean, and there is one to speak of."""
    if (seed := d.one_seed) is None or abs(d.mean) < 0.5:
        return ""
    rest = [value for own, value in d.by_seed.items() if own != seed]
    return f" More than half of that is seed {seed}: the others alone give {signed(sum(rest) / len(rest))}."


def shown_in(families: Mapping[str, Family], but: Sequence[str] = ()) -> str:
    """Which arms differ, of several families told apart by where they were measured."""
    each = [
        (name, where, d)
        for where, family in families.items()
        for name, d in family.items()
        if name not in but and d.n
    ]
    found, alike = (
        [f"`{name}` {signed(d.mean)} {where}".rstrip() for name, where, d in each if chosen(d)]
        for chosen in (lambda d: d.shown, lambda d: d.in_every_seed)
    )
    if found:
        return f"these differences are shown within this section: {', '.join(found)}"
    least = min((max(d.holm) for _, _, d in each), default=math.nan)
    floor = min((d.least_p * d.of for _, _, d in each), default=math.nan)
    bound = "" if floor < LEVEL else f"; so few pairs can give none below {p_value(floor)}"
    every = f"; the same sign in every seed have {', '.join(alike)}" if alike else ""
    return f"no difference is shown (smallest corrected p {p_value(least)}{bound}){every}"


def ends(family: Family) -> str:
    """The lowest and the highest mean, with their names."""
    low, high = (one(family, key=lambda name: family[name].mean) for one in (min, max))
    return f"{signed(family[low].mean)} (`{low}`) to {signed(family[high].mean)} (`{high}`)"


def ps(d: Difference) -> list[str]:
    """Both p, and in brackets what Holm leaves of them."""
    pairs = zip((d.wilcoxon, d.permutation), d.holm, strict=True)
    return [
        p_value(p) if math.isnan(after) else f"{p_value(p)} ({p_value(after)})"
        for p, after in pairs
    ]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Markdown, the first `left` columns to the left."""
    lines = [
        "| " + " | ".join(header) + " |",
        "|" + "|".join("---" if at < left else "---:" for at in range(len(header))) + "|",
    ]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def f1_table(arms: Mapping[str, Series], sizes: Sequence[int], paper: Mapping[str, Any]) -> str:
    """Test F1 of each arm by labeled sentences, the paper's row under ours, what was generated and how many steps were taken."""
    rows = []
    for name, series in arms.items():
        last = [run[max(run)] for run in series.runs.values()]
        made, asked = (
            sum(row[column] or 0 for row in last) / len(last) for column in ("generated", "asked")
        )
        steps = f"{min(run[min(run)]['steps'] or 0 for run in series.runs.values())}–{max(row['steps'] or 0 for row in last)}"
        rows.append(
            [
                *f1_row(f"`{name}`", series, sizes),
                f"{made:.0f} of {asked:.0f}" if last[0]["variant"] != "none" else "–",
                steps,
            ]
        )
        if name in paper.get("test", {}):
            rows.append([*paper_row(name, paper["test"][name], sizes, paper.get("name")), "", ""])
    return table(["arm", "n", *heads(sizes, paper), "area", "generated", "steps"], rows)


def f1_row(label: str, series: Series, sizes: Sequence[int], split: str = "test") -> list[str]:
    """One arm's cells."""
    heights = [score(series.interval(f1_at(size, split))) for size in sizes]
    return [label, str(len(series.runs)), *heights, score(series.interval(area(sizes, split)))]


def paper_row(
    label: str, values: Sequence[float], sizes: Sequence[int], data: str | None = None
) -> list[str]:
    """The paper's cells, as far as it gives them."""
    whole = (
        f"*{area_under_curve(Curve(tuple(sizes), tuple(values))):.2f}*"
        if len(values) == len(sizes)
        else ""
    )
    return [
        f"*paper{f', {data}' if data else ''}: {label}*",
        "",
        *(f"*{value:.2f}*" for value in values),
        *[""] * (len(sizes) - len(values)),
        whole,
    ]


def heads(sizes: Sequence[int], paper: Mapping[str, Any]) -> list[str]:
    """Numbers of labeled sentences, with the paper's where it has another."""
    theirs = paper.get("sizes", sizes) if len(paper.get("sizes", sizes)) == len(sizes) else sizes
    return [
        f"{own:,}" if own == their else f"{own:,} (*{their:,}*)"
        for own, their in zip(sizes, theirs, strict=True)
    ]


def tests_table(first: Family, whole: Family, start: int, over: str = "step-matched `none`") -> str:
    """The paired tests of all arms."""
    rows = []
    for name, d in first.items():
        cells = [[spread(one, 2), f"{one.won} of {one.n}", *ps(one)] for one in (d, whole[name])]
        rows.append([name if "`" in name else f"`{name}`", str(d.n), *cells[0], *cells[1]])
    tests = ["won", "Wilcoxon p", "permutation p"]
    return table([f"over {over}", "pairs", f"at {start:,}", *tests, "area", *tests], rows)
