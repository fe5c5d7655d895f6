"""The section of docs/results.md on trainings that were repeated on a CPU."""

from __future__ import annotations

from statistics import stdev

from results_numbers import Measured, Series, compare, corrected, f1_at
from results_sections import NAMES, Page, Section, noted
from results_words import ps, score, spread, table, told, verdict

ABOUT = """Plain training at the first size of a main curve: the same sentences in the same order, as many steps. Precision (float32 against bf16), the dropout masks, which each device draws in its own way, and the state of the code differ, so the
spread by seed is not rounding alone; and nothing is said of later rounds, where the models choose different sentences."""


def devices(m: Measured, page: Page) -> Section:
    """Plain training on a CPU and in the main curves on a GPU; and `best` of those, where it ran on a CPU, against plain training there."""
    rows, says, pairs = [], [], {}
    for name, series in m.arms.items():
        main = page.arms(f"{m.arm(name).data}-main")
        here, there = on_cpu(series), elsewhere(main.get("none", Series()))
        if here.runs.keys() & there.runs.keys():
            pairs[name] = (
                here,
                there,
                on_cpu(main.get("best", Series())),
                min(next(iter(here.runs.values()))),
            )
    over = corrected(
        {name: compare(here, there, f1_at(size)) for name, (here, there, _, size) in pairs.items()}
    )
    for name, d in over.items():
        here, there, best, size = pairs[name]
        data = NAMES.get(m.arm(name).data, m.arm(name).data)
        heights = [score(series.only(d.by_seed).interval(f1_at(size))) for series in (there, here)]
        rows.append(
            [data, f"{size:,}", str(d.n), *heights, spread(d, 2), f"{d.won} of {d.n}", *ps(d)]
        )
        says.append(
            f"{data} at {size:,} sentences: on a CPU `none` is {told(d)} over `none` on a GPU{verdict(d)}."
        )
        if d.n > 1:
            says.append(
                f"The differences by seed have a standard deviation of {stdev(d.by_seed.values()):.1f}."
            )
        if (gain := compare(best, here, f1_at(size))).n:
            says.append(
                f"`best` of the main curves, which ran on a CPU, is {told(gain)} there over `none` on a CPU too; this p is not corrected, "
                "and that section, where `best` is one of many arms, is to be asked what is shown."
            )
    header = [
        "data",
        "sentences",
        "pairs",
        "`none`, GPU",
        "`none`, CPU",
        "CPU − GPU",
        "won",
        "Wilcoxon p",
        "permutation p",
    ]
    return Section([ABOUT, " ".join(says), table(header, rows), *noted(m)])


def on_cpu(series: Series) -> Series:
    """Those of the runs that a CPU made."""
    return series.only(
        seed
        for seed, run in series.runs.items()
        if all(row["device"] == "cpu" for row in run.values())
    )


def elsewhere(series: Series) -> Series:
    """Those that none made."""
    return series.only(series.runs.keys() - on_cpu(series).runs.keys())
