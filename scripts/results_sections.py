"""What the sections of docs/results.md share: what a section is, what it may look at, and what must be known of some runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results_figures import save
from results_numbers import Difference, Family, Measured, Series, area, compare, corrected, f1_at
from results_words import p_value, spread

NAMES = {"conll03": "CoNLL-03", "webpage": "WebPage", "genia2011": "GENIA-2011 triggers", "wnut17": "WNUT-17"}
CURVE = "whole curve"
COMPILED = "2026-11-16T02"  # when the runs of genia-main ended whose steps were compiled
NOTES = {
    "webpage-main": (
        "WebPage has 385 training sentences of which 362 are distinct; we train on those, "
        "so the last round of 85 + 5 × 60 has only 37 to add."
    ),
    "genia-main": (
        "55 of the 100 runs took training steps as they are shipped, 45 (of seeds 1 to 6) steps that `torch.compile` had made of the same "
        "code: the same arithmetic but for rounding. It was a trial ([performance.md](performance.md)) and is not part of the project. "
        "`whole` made no sentence here and takes the steps of `none`, so the two arms should be one, as they are on CoNLL-03 and WebPage "
        "wherever `whole` makes none. Here they agree in 4 of 60 rounds and differ by 1.1 F1 in standard deviation, by 3.2 at most. "
        "Alone on the GPU a training on these sentences repeats to the last bit; where MPS shares it, one training of 380 steps in seven "
        "does not, and longer ones more often ([performance.md](performance.md)); kernels that add in a fixed order, which seeds 7 to 9 "
        "had, do not change that. "
        "That noise is in every difference between single runs of this section; it makes them harder to show, and favors none."
    ),
}
NOTES |= dict.fromkeys(
    ("policies-webpage", "policies-genia"),
    "`nte` is `none at 10 epochs` of the main curves, run before the others and with other kernels, and not every training "
    "repeats where several share a GPU. So the first points of a seed are not the same for all, though sentences and steps are.",
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
        return self.measured[name].arms if name in self.measured and self.measured[name].made else {}


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
    return [*own, as_shipped(m)] if m.experiment.name == "genia-main" else own


def as_shipped(m: Measured) -> str:
    """The same comparisons without the runs whose steps were compiled."""
    arms = {
        name: Series({seed: run for seed, run in series.runs.items() if not str(run[min(run)]["finished"]).startswith(COMPILED)})
        for name, series in m.arms.items()
    }
    told = []
    for one, two in (("sub", "none"), ("label", "none"), ("sub", "duplicate"), ("none", "none at 10 epochs")):
        at, across = (compare(arms[one], arms[two], measure) for measure in (f1_at(m.sizes[0]), area(m.sizes)))
        told.append(f"`{one}` over `{two}` {spread(at)} and {spread(across)} ({at.n} pairs)")
    return f"Without the 45, at {m.sizes[0]:,} sentences and over the whole curve: {'; '.join(told)}."


def hardly_made(m: Measured) -> list[str]:
    """Arms that were to generate and did not."""
    texts = []
    for name, series in m.arms.items():
        last = [run[max(run)] for run in series.runs.values()]
        made, asked = (sum(row[column] or 0 for row in last) / len(last) for column in ("generated", "asked"))
        if last[0]["variant"] != "none" and made < 0.1 * asked:
            texts.append(f"`{name}` generated {made:.1f} of the {asked:.0f} sentences asked for, so that it is all but `none`.")
    return texts


def differences(m: Measured, pairs: Mapping[str, str]) -> tuple[dict[str, Difference], dict[str, Difference]]:
    """Every arm less its baseline, at the first size and by area, each corrected over the arms."""
    kept = {name: base for name, base in pairs.items() if base in m.arms}
    measures = (f1_at(m.sizes[0]), area(m.sizes))
    one, two = ({name: compare(m.arms[name], m.arms[base], measure) for name, base in kept.items()} for measure in measures)
    paired = [name for name in kept if one[name].n and two[name].n]
    return corrected({name: one[name] for name in paired}), corrected({name: two[name] for name in paired})


def claimed(m: Measured, where: str, arm: str, base: str, found: Family, named: bool = True) -> list[Claim]:
    """The comparison of two arms, one claim for each measure."""
    digests = m.arm(arm).data, m.arm(arm).digest, m.arm(base).digest
    pairs = [(label, d, (*digests, CURVE if label == CURVE else "at the start")) for label, d in found.items() if d.n]
    return [Claim(where, f"`{arm}` over `{base}`, {label},", d, key, named) for label, d, key in pairs]


def figure(m: Measured, page: Page, drawn: Any) -> str:
    """Save it, and the line that shows it."""
    save(drawn, page.images / f"results-{m.experiment.name}.png")
    return f"![{m.experiment.title}](img/results-{m.experiment.name}.png)"
