"""The sections of docs/results.md on the main curves, and how much of a gain is longer training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from results_figures import overview
from results_numbers import Measured, area, compare, corrected, f1_at, mean_of, seen
from results_sections import (
    CURVE,
    NAMES,
    Claim,
    Page,
    Section,
    claimed,
    differences,
    figure,
    hardly_made,
    noted,
)
from results_words import (
    caveat,
    f1_table,
    p_value,
    shown_in,
    signed,
    spread,
    table,
    tests_table,
    told,
    verdict,
)

COPIES = "`sub` over `duplicate`"


def main_curves(m: Measured, page: Page) -> Section:
    """All arms of a data set against `none`, and how much of the gain the paper would see is extra training."""
    data, start, paper = (
        NAMES.get(m.data, m.data),
        m.sizes[0],
        page.paper.get(m.experiment.name, {}),
    )
    first, whole = differences(
        m, {name: "none" for name in m.arms if name != "none"}, {COPIES: ("sub", "duplicate")}
    )
    plain = [{name: d for name, d in family.items() if name != COPIES} for family in (first, whole)]
    if not plain[0]:
        return Section([f1_table(m.arms, m.sizes, paper)])
    drawn = overview(
        m.arms,
        m.sizes,
        *plain,
        "step-matched none",
        ("none", "none at 10 epochs", "duplicate", "sub"),
    )
    says: list[str] = []
    claims: list[Claim] = []
    if "sub" in first:
        says += [
            f"At {start:,} sentences `sub` is {told(first['sub'])} over step-matched `none`{verdict(first['sub'])}.{caveat(first['sub'])}"
        ]
        says += [f"Over the whole curve it is {told(whole['sub'])}{verdict(whole['sub'])}."]
        claims += claimed(
            m, data, "sub", "none", {f"at {start:,} sentences": first["sub"], CURVE: whole["sub"]}
        )
    if "label" in first:
        claims += claimed(
            m,
            data,
            "label",
            "none",
            {f"at {start:,} sentences": first["label"], CURVE: whole["label"]},
            False,
        )
    if COPIES in first:
        here, across = first[COPIES], whole[COPIES]
        says += [
            f"`duplicate`, which adds nothing new, is {told(first['duplicate'])} over `none` at {start:,}."
        ]
        says += [
            f"`sub` over `duplicate` is {told(here)} there, {told(across)} over the whole curve.{uneven(m, start)}"
        ]
        claims += claimed(
            m, data, "sub", "duplicate", {f"at {start:,} sentences": here, CURVE: across}
        )
    others = {f"at {start:,}": plain[0], "over the curve": plain[1]}
    says += [f"Of the other arms {shown_in(others, ('sub', 'duplicate'))}."]
    text, line = (
        extra_training(m, paper, data)
        if {"sub", "none", "none at 10 epochs"} <= m.arms.keys()
        else ("", "")
    )
    parts = [
        " ".join([*says, *hardly_made(m)]),
        figure(m, page, drawn),
        f1_table(m.arms, m.sizes, paper),
        tests_table(first, whole, start),
    ]
    return Section(
        [part for part in (*parts, text, *noted(m)) if part], claims, [line] if line else []
    )


def uneven(m: Measured, start: int) -> str:
    """Equal steps are not equal sentences, nor equal batches: what that is at the first size."""
    rows = [next(iter(m.arms[name].runs.values())).get(start, {}) for name in ("none", "duplicate")]
    steps, size = rows[0].get("steps"), m.arm("none").config.training.batch_size
    if not steps or rows[1].get("steps") != steps:
        return ""
    counts = [start + (row["generated"] or 0) for row in rows]
    passed = [
        f"{seen(count, steps, size):,} sentences, the last batch of an epoch with {(count - 1) % size + 1}"
        for count in counts
    ]
    why = "equal steps are not equal batches"
    return f" That is the cleaner comparison, since {why}: {steps} steps of `none` see {passed[0]}; of `duplicate` {passed[1]}."


def extra_training(m: Measured, paper: Mapping[str, Any], data: str) -> tuple[str, str]:
    """The gain over `none at 10 epochs` in two parts, over the seeds that all arms have; the text, and a line for the summary."""
    names = [name for name in ("sub", "none", "none at 10 epochs", "duplicate") if name in m.arms]
    common = sorted(set.intersection(*(set(m.arms[name].runs) for name in names)))
    if not common:
        return "", ""
    arms = {name: m.arms[name].only(common) for name in names}
    start = f"{m.sizes[0]:,}"
    seed_stage = [row[0] for row in paper.get("test", {}).values()]  # without and with SeqMix
    theirs = {
        start: seed_stage[1] - seed_stage[0] if len(seed_stage) == 2 else math.nan,
        "mean": paper.get("mean_gain", math.nan),
    }
    rows, found = [], {}
    for label, measure in [
        *((f"{size:,}", f1_at(size)) for size in m.sizes),
        ("mean", mean_of(m.sizes)),
    ]:
        gain, steps = (
            compare(arms[one], arms["none at 10 epochs"], measure) for one in ("sub", "none")
        )
        found[label] = [gain, steps, compare(arms["sub"], arms["none"], measure)]
        found[label] += (
            [compare(arms["duplicate"], arms["none"], measure)] if "duplicate" in arms else []
        )
        cells = [spread(d, 2) for d in found[label]]
        rows.append(
            [
                label,
                *cells[:3],
                *(cells[3:] or ["–"]),
                f"*{signed(theirs[label], 2)}*" if label in theirs else "",
            ]
        )
    whose = "paper's gain" + ("" if paper.get("name") == data else f", {paper.get('name')}")
    header = [
        "labeled",
        "`sub` over `none at 10 epochs`",
        "= extra steps: `none` over `none at 10 epochs`",
        "+ what is left: `sub` over `none`",
    ]
    text = f"How much of the gain is extra training ({len(common)} seeds):\n\n"
    text += table([*header, "`duplicate` over `none`", whose], rows)
    text += f"\n\nThe last row is the mean of the {len(m.sizes)} points, as the paper takes it; its gain there is over its best baseline."
    gain, steps, left, *copies = found[start]
    line = f"{data} at {start} sentences, compared as the paper does: `sub` over 10 epochs of `none` {spread(gain)}"
    line += f" (there {signed(theirs[start])}) ="
    line += f" {spread(steps)} from extra steps and {spread(left)} left" + "".join(
        f", where mere copies leave {spread(d)}" for d in copies
    )
    mean, *parts = (signed(d.mean, 2) for d in found["mean"][:3])
    return (
        text,
        f"{line}; in the mean of the {len(m.sizes)} points {' and '.join(parts)} of {mean}.",
    )


def longer_training(m: Measured, page: Page) -> Section:
    """Epochs without any augmentation, with `sub` of the main curves beside them."""
    base, start = "none epochs=10", m.sizes[0]
    arms, main = dict(m.arms), page.arms("conll03-main")
    if "sub" in main:
        arms["sub"] = main["sub"].only(m.experiment.seeds)
    if base not in arms or len(m.arms) < 2:
        return Section([f1_table(arms, m.sizes, {})])
    one, two = (
        {
            name: compare(series, arms[base], measure)
            for name, series in arms.items()
            if name != base
        }
        for measure in (f1_at(start), area(m.sizes))
    )
    first, whole = corrected(one), corrected(two)
    longer = [name for name in first if name.startswith("none")]
    says = [
        f"At {start:,} sentences `{name}` is {told(first[name])} over 10 epochs, over the whole curve {spread(whole[name])}."
        for name in longer
    ]
    best = max(longer, key=lambda name: m.arms[name].interval(f1_at(start, "dev")).mean)
    d = first[best]
    line = f"training longer and nothing else: `{best}` (the best on dev) is {spread(d)} over 10 epochs at {start:,} CoNLL-03 sentences"
    line += f", higher in {d.won} of {d.n} seeds (p = {p_value(d.wilcoxon)}; {d.n} pairs can give no less than {p_value(d.least_p)})"
    line += f", and {spread(whole[best])} over the whole curve"
    if "sub" in arms:
        over = compare(arms[best], arms["sub"], f1_at(start))
        says.append(
            f"`sub` with the paper's protocol is {spread(first['sub'])} at {start:,}; `{best}`, the best on dev, is {told(over)} over it."
        )
        line += f"; over `sub` {spread(over)} at {start:,}, {over.won} of {over.n} seeds"
    drawn = overview(arms, m.sizes, first, whole, "10 epochs of none", tuple(arms))
    parts = [
        " ".join(says),
        figure(m, page, drawn),
        f1_table(arms, m.sizes, {}),
        tests_table(first, whole, start, f"`{base}`"),
    ]
    return Section(parts, instead=[line + "."])
