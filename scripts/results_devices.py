"""The section of docs/results.md on trainings that were repeated on a CPU."""

from __future__ import annotations

from statistics import stdev

from results_numbers import Measured, Series, compare, corrected, f1_at
from results_sections import NAMES, Page, Section, noted
from results_words import ps, score, spread, table, told, verdict


def devices(m: Measured, page: Page) -> Section:
    """Plain training here and in the main curves; and `best` of those, where it ran on a CPU, against plain training there."""
    rows, says, pairs = [], [], {}
    for name, here in m.arms.items():
        data = m.arm(name).data
        main = page.arms(f"{data}-main")
        if "none" in main:
            pairs[NAMES.get(data, data)] = here, main["none"], on_cpu(main.get("best", Series())), min(next(iter(here.runs.values())))
    over = corrected({data: compare(here, there, f1_at(size)) for data, (here, there, _, size) in pairs.items()})
    for data, d in over.items():
        here, there, best, size = pairs[data]
        heights = [score(series.only(d.by_seed).interval(f1_at(size))) for series in (there, here)]
        rows.append([data, f"{size:,}", str(d.n), *heights, spread(d, 2), f"{d.won} of {d.n}", *ps(d)])
        says.append(f"{data} at {size:,} sentences: on a CPU `none` is {told(d)} over the same on a GPU{verdict(d)}.")
        if d.n > 1:
            says.append(f"By seed the two differ by {stdev(d.by_seed.values()):.1f} in standard deviation.")
        if (gain := compare(best, here, f1_at(size))).n:
            says.append(f"`best` of the main curves, which ran on a CPU, is {told(gain)} over `none` on one.")
    header = ["data", "sentences", "pairs", "`none`, GPU", "`none`, CPU", "CPU − GPU", "won", "Wilcoxon p", "permutation p"]
    return Section([" ".join(says), table(header, rows), *noted(m)])


def on_cpu(series: Series) -> Series:
    """Those of the runs that a CPU made."""
    return Series({seed: run for seed, run in series.runs.items() if all(row["device"] == "cpu" for row in run.values())})
