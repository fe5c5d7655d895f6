"""What the sections of docs/results.md share: what a section is, what it may look at, and what must be known of some runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from results_figures import save
from results_numbers import (
    Difference,
    Family,
    Measured,
    Rounds,
    Series,
    area,
    compare,
    corrected,
    f1_at,
)
from results_words import p_value, spread, table

NAMES = {
    "conll03": "CoNLL-03",
    "webpage": "WebPage",
    "genia2011": "GENIA-2011 triggers",
    "wnut17": "WNUT-17",
}
CURVE = "whole curve"
COMPILED = "2026-11-16T02"  # when the runs of genia-main ended whose steps were compiled
NOTES = {
    "webpage-main": (
        "WebPage has 385 training sentences of which 362 are distinct; we train on those, "
        "so the last round of 85 + 5 × 60 has only 37 to add."
    ),
    "genia-main": (
        "55 of the 100 runs took training steps as they are shipped, 45 steps that `torch.compile` had made of the same code, in a trial "
        "([performance.md](performance.md)) that is not part of the project: the command below does not make those 45 again. They are not "
        "spread evenly over the arms."
    ),
}
NOTES |= dict.fromkeys(
    ("policies-webpage", "policies-genia"),
    "`nte` is `none at 10 epochs` of the main curves, run before the others and with other kernels, and not every training "
    "repeats where several share a GPU. So the first points of a seed are not the same for all, though sentences and steps are.",
)
NOTES["policies-genia"] += (
    " Seven runs (11 workers: `random` and `lc_prime` twice each, `qbc` three times) come from a session in which four others ended with a "
    "loss of NaN ([performance.md](performance.md))."
)


@dataclass(frozen=True)
class Page:
    """What every section may look at."""

    measured: Mapping[str, Measured]
    paper: Mapping[str, Any]
    images: Path
    results: Path

    def arms(self, name: str) -> Mapping[str, Series]:
        """The arms of an experiment; none where it was not measured."""
        return (
            self.measured[name].arms if name in self.measured and self.measured[name].made else {}
        )


@dataclass(frozen=True)
class Claim:
    """One comparison of training with SeqMix and without, for the summary."""

    where: str
    what: str
    difference: Difference
    key: tuple[str, ...]  # the same two configs elsewhere are the same comparison
    named: bool = True  # also where nothing is shown

    def __str__(self) -> str:
        return f"{self.what} {spread(self.difference)}, p = {p_value(max(self.difference.holm))}"


@dataclass(frozen=True)
class Section:
    """The text of a section, and what goes into the summary."""

    parts: list[str]
    claims: list[Claim] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)  # how much is extra training
    instead: list[str] = field(default_factory=list)  # what helps


def noted(m: Measured) -> list[str]:
    """What must be known of an experiment's runs."""
    own = [NOTES[m.experiment.name]] if m.experiment.name in NOTES else []
    return [*own, compiled(m), as_shipped(m)] if m.experiment.name == "genia-main" else own


def compiled(m: Measured) -> str:
    """Which runs those are; and, where `whole` made nothing and so should equal `none`, how far the two are apart with them and without."""
    seeds = {
        arm: [seed for seed, run in series.runs.items() if _compiled(run)]
        for arm, series in m.arms.items()
    }
    rows = [[f"`{arm}`", ", ".join(map(str, own))] for arm, own in seeds.items()]
    text = table(["arm", "seeds with compiled steps"], rows)
    if {"whole", "none"} <= m.arms.keys():
        with_any = {*seeds["whole"], *seeds["none"]}
        far = {
            where: [_rms(value for size in sizes for seed, value in compare(m.arms["whole"], m.arms["none"], f1_at(size)).by_seed.items()
                         if (seed in with_any) == chosen) for chosen in (False, True)]
            for where, sizes in ((f"at {m.sizes[0]:,} sentences", m.sizes[:1]), ("later", m.sizes[1:]))
        }  # fmt: skip
        apart = "; ".join(
            f"{where} {one:.2f} F1 without a compiled run in the pair, {two:.2f} with"
            for where, (one, two) in far.items()
        )
        text += "\n\n`whole` made no sentence here and takes the steps of `none`, so the two should be one. Root mean square of their "
        text += f"difference: {apart}. The first point thus differs where steps were compiled; the later ones also by MPS, "
        text += "under which not every training repeats ([performance.md](performance.md)), and by the other sentences that are then chosen."
    return text


def _rms(values: Iterable[float]) -> float:
    return math.sqrt(fmean(value * value for value in values))


def _compiled(run: Rounds) -> bool:
    return str(run[min(run)]["finished"]).startswith(COMPILED)


def as_shipped(m: Measured) -> str:
    """The same comparisons without the runs whose steps were compiled."""
    arms = {
        name: Series({seed: run for seed, run in series.runs.items() if not _compiled(run)})
        for name, series in m.arms.items()
    }
    told = []
    for one, two in (
        ("sub", "none"),
        ("label", "none"),
        ("sub", "duplicate"),
        ("none", "none at 10 epochs"),
    ):
        at, across = (
            compare(arms[one], arms[two], measure) for measure in (f1_at(m.sizes[0]), area(m.sizes))
        )
        told.append(f"`{one}` over `{two}` {spread(at)} and {spread(across)} ({at.n} pairs)")
    return (
        f"Without the 45, at {m.sizes[0]:,} sentences and over the whole curve: {'; '.join(told)}."
    )


def hardly_made(m: Measured) -> list[str]:
    """Arms that were to generate and did not."""
    texts = []
    for name, series in m.arms.items():
        last = [run[max(run)] for run in series.runs.values()]
        made, asked = (
            sum(row[column] or 0 for row in last) / len(last) for column in ("generated", "asked")
        )
        if last[0]["variant"] != "none" and made < 0.1 * asked:
            texts.append(
                f"`{name}` generated {made:.1f} of the {asked:.0f} sentences asked for, so that it is all but `none`."
            )
    return texts


def differences(
    m: Measured, pairs: Mapping[str, str], more: Mapping[str, tuple[str, str]] | None = None
) -> tuple[dict[str, Difference], dict[str, Difference]]:
    """Every arm less its baseline, and `more` under names of their own, at the first size and by area, each corrected over all of them."""
    kept = {
        name: pair
        for name, pair in {
            **{name: (name, base) for name, base in pairs.items()},
            **(more or {}),
        }.items()
        if {*pair} <= {*m.arms}
    }
    measures = (f1_at(m.sizes[0]), area(m.sizes))
    one, two = (
        {name: compare(m.arms[arm], m.arms[base], measure) for name, (arm, base) in kept.items()}
        for measure in measures
    )
    paired = [name for name in kept if one[name].n and two[name].n]
    return corrected({name: one[name] for name in paired}), corrected(
        {name: two[name] for name in paired}
    )


def claimed(
    m: Measured, where: str, arm: str, base: str, found: Family, named: bool = True
) -> list[Claim]:
    """The comparison of two arms, one claim for each measure."""
    digests = m.arm(arm).data, m.arm(arm).digest, m.arm(base).digest
    pairs = [
        (label, d, (*digests, CURVE if label == CURVE else "at the start"))
        for label, d in found.items()
        if d.n
    ]
    return [
        Claim(where, f"`{arm}` over `{base}`, {label},", d, key, named) for label, d, key in pairs
    ]


def figure(m: Measured, page: Page, drawn: Any) -> str:
    """Save it, and the line that shows it."""
    save(drawn, page.images / f"results-{m.experiment.name}.png")
    return f"![{m.experiment.title}](img/results-{m.experiment.name}.png)"
