"""The sections of docs/results.md: what each experiment says, chosen by rules from its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results_figures import overview, policies, save
from results_numbers import Difference, Family, Measured, Series, area, compare, corrected, f1_at, judged, seen
from results_words import caveat, ends, f1_table, p_value, ps, score, shown_in, signed, spread, table, tests_table, told, verdict

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
    "`nte` is `none at 10 epochs` of the main curves, run before the others and with other kernels; two runs of `qbc` on WebPage were "
    "on a CPU, and those on GENIA shared a GPU, where not every training repeats. So the first points of a seed are not the same for all, "
    "though sentences and steps are: that is what rounding does here.",
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


def main_curves(m: Measured, page: Page) -> Section:
    """All arms of a data set against `none`, and how much of the gain the paper would see is extra training."""
    data, start, paper = NAMES.get(m.data, m.data), m.sizes[0], page.paper.get(m.experiment.name, {})
    first, whole = differences(m, {name: "none" for name in m.arms if name != "none"})
    if not first:
        return Section([f1_table(m.arms, m.sizes, paper)])
    drawn = overview(m.arms, m.sizes, first, whole, "step-matched none", ("none", "none at 10 epochs", "duplicate", "sub"))
    says: list[str] = []
    claims: list[Claim] = []
    if "sub" in first:
        says += [
            f"At {start:,} sentences `sub` is {told(first['sub'])} over step-matched `none`{verdict(first['sub'])}.{caveat(first['sub'])}"
        ]
        says += [f"Over the whole curve it is {told(whole['sub'])}{verdict(whole['sub'])}."]
        claims += claimed(m, data, "sub", "none", {f"at {start:,} sentences": first["sub"], CURVE: whole["sub"]})
    if "label" in first:
        claims += claimed(m, data, "label", "none", {f"at {start:,} sentences": first["label"], CURVE: whole["label"]}, False)
    others = {f"at {start:,}": dict(first), "over the curve": dict(whole)}
    if {"sub", "duplicate"} <= first.keys():
        measures = {f"at {start:,} sentences": f1_at(start), CURVE: area(m.sizes)}  # a question of its own, asked twice
        over = corrected({label: compare(m.arms["sub"], m.arms["duplicate"], measure) for label, measure in measures.items()})
        here, across = over.values()
        says += [f"`duplicate`, which adds nothing new, is {told(first['duplicate'])} over `none` at {start:,}."]
        says += [f"`sub` over `duplicate` is {told(here)} there, {told(across)} over the whole curve.{uneven(m, start)}"]
        claims += claimed(m, data, "sub", "duplicate", over)
        first, whole = {**first, "`sub` over `duplicate`": here}, {**whole, "`sub` over `duplicate`": across}
    says += [f"Of the other arms {shown_in(others, ('sub', 'duplicate'))}."]
    text, line = extra_training(m, paper, data) if {"sub", "none", "none at 10 epochs"} <= m.arms.keys() else ("", "")
    parts = [" ".join([*says, *hardly_made(m)]), figure(m, page, drawn), f1_table(m.arms, m.sizes, paper), tests_table(first, whole, start)]
    return Section([part for part in (*parts, text, *noted(m)) if part], claims, [line] if line else [])


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


def uneven(m: Measured, start: int) -> str:
    """Equal steps are not equal sentences, nor equal batches: what that is at the first size."""
    rows = [next(iter(m.arms[name].runs.values())).get(start, {}) for name in ("none", "duplicate")]
    steps, size = rows[0].get("steps"), m.arm("none").config.training.batch_size
    if not steps or rows[1].get("steps") != steps:
        return ""
    counts = [start + (row["generated"] or 0) for row in rows]
    passed = [f"{seen(count, steps, size):,} sentences, the last batch of an epoch with {(count - 1) % size + 1}" for count in counts]
    why = "equal steps are not equal batches"
    return f" That is the cleaner comparison, since {why}: {steps} steps of `none` see {passed[0]}; of `duplicate` {passed[1]}."


def hardly_made(m: Measured) -> list[str]:
    """Arms that were to generate and did not."""
    texts = []
    for name, series in m.arms.items():
        last = [run[max(run)] for run in series.runs.values()]
        made, asked = (sum(row[column] or 0 for row in last) / len(last) for column in ("generated", "asked"))
        if last[0]["variant"] != "none" and made < 0.1 * asked:
            texts.append(f"`{name}` generated {made:.1f} of the {asked:.0f} sentences asked for, so that it is all but `none`.")
    return texts


def extra_training(m: Measured, paper: Mapping[str, Any], data: str) -> tuple[str, str]:
    """The gain over `none at 10 epochs` in two parts, over the seeds that all arms have; the text, and a line for the summary."""
    names = [name for name in ("sub", "none", "none at 10 epochs", "duplicate") if name in m.arms]
    common = sorted(set.intersection(*(set(m.arms[name].runs) for name in names)))
    if not common:
        return "", ""
    arms = {name: m.arms[name].only(common) for name in names}
    start = f"{m.sizes[0]:,}"
    seed_stage = [row[0] for row in paper.get("test", {}).values()]  # without and with SeqMix
    theirs = {start: seed_stage[1] - seed_stage[0] if len(seed_stage) == 2 else math.nan, "area": paper.get("mean_gain", math.nan)}
    rows, found = [], {}
    for label, measure in [*((f"{size:,}", f1_at(size)) for size in m.sizes), ("area", area(m.sizes))]:
        gain, steps = (compare(arms[one], arms["none at 10 epochs"], measure) for one in ("sub", "none"))
        found[label] = [gain, steps, compare(arms["sub"], arms["none"], measure)]
        found[label] += [compare(arms["duplicate"], arms["none"], measure)] if "duplicate" in arms else []
        share = f"{max(0.0, 100 * steps.mean / gain.mean):.0f} %" if gain.interval.known and gain.interval.low > 0 else "–"
        cells = [spread(d, 2) for d in found[label]]
        rows.append([label, *cells[:3], share, *(cells[3:] or ["–"]), f"*{signed(theirs[label], 2)}*" if label in theirs else ""])
    whose = "paper's gain" + ("" if paper.get("name") == data else f", {paper.get('name')}")
    header = [
        "labeled",
        "`sub` over `none at 10 epochs`",
        "= extra steps: `none` over `none at 10 epochs`",
        "+ what is left: `sub` over `none`",
    ]
    text = f"How much of the gain is extra training ({len(common)} seeds; the share where the gain's interval lies above 0):\n\n"
    text += table([*header, "share of extra steps", "`duplicate` over `none`", whose], rows)
    text += "\n\nThe paper's gain in the last row is the mean of its six points, over its best baseline."
    gain, steps, left, *copies = found[start]
    line = f"{data} at {start} sentences, compared as the paper does: `sub` over 10 epochs of `none` {spread(gain)}"
    line += f" (there {signed(theirs[start])}) ="
    line += f" {spread(steps)} from extra steps and {spread(left)} left" + "".join(f", where mere copies leave {spread(d)}" for d in copies)
    return (
        text,
        f"{line}; over the whole curve {' and '.join(signed(d.mean) for d in found['area'][1:3])} of {signed(found['area'][0].mean)}.",
    )


def by_policy(m: Measured, page: Page) -> Section:
    """Policies × {none, sub}: what SeqMix adds to each, and what each is worth without it."""
    subs = {name.removesuffix(" variant=sub"): name for name in m.arms if name.endswith(" variant=sub")}
    pairs = {policy: (sub, plain) for policy, sub in subs.items() if (plain := f"{policy} variant=none") in m.arms}
    pairs = {policy: pair for policy, pair in pairs.items() if m.arms[pair[0]].runs.keys() & m.arms[pair[1]].runs.keys()}
    if not pairs:
        return Section([f1_table(m.arms, m.sizes, {})])
    height = area(m.sizes)
    gains = corrected({policy: compare(m.arms[sub], m.arms[plain], height) for policy, (sub, plain) in pairs.items()})
    alike = {policy: "random-crf" if m.arm(plain).config.tagger.head == "crf" else "random" for policy, (_, plain) in pairs.items()}
    worth = {
        policy: compare(m.arms[pairs[policy][1]], m.arms[pairs[base][1]], height)
        for policy, base in alike.items()
        if base in pairs and base != policy
    }
    seeds = sorted(set.intersection(*(set(d.by_seed) for d in gains.values())))
    mean = judged({seed: sum(d.by_seed[seed] for d in gains.values()) / len(gains) for seed in seeds})
    theirs = page.paper.get(m.experiment.name, {}).get("gain", {})
    rows = []
    for policy, d in gains.items():
        sub, plain = (score(m.arms[name].interval(height)) for name in pairs[policy])
        paper, over = f"*{signed(theirs[policy], 2)}*" if policy in theirs else "", spread(worth[policy], 2) if policy in worth else ""
        rows.append([f"`{policy}`", str(d.n), plain, sub, spread(d, 2), f"{d.won} of {d.n}", *ps(d), paper, over])
    rows.append(["mean over policies", str(mean.n), "", "", spread(mean, 2), f"{mean.won} of {mean.n}", *ps(mean), "", ""])
    says = f"Over the whole curve `sub` adds {ends(gains)} to step-matched `none` with the same policy, {spread(mean)} in the mean over the"
    says += f" {len(gains)} policies; {shown_in({'': gains})}."
    if worth:
        best = max(worth, key=lambda policy: worth[policy].mean)
        says += f" Without augmentation `{best}` is best against random with the same head: {told(worth[best])}."
    header = ["policy", "pairs", "`none`, area", "`sub`, area", "`sub` over `none`", "won", "Wilcoxon p", "permutation p", "paper"]
    parts = [
        says,
        figure(m, page, policies(gains, worth, theirs)),
        table([*header, "policy over random, `none`"], rows),
        f1_table(m.arms, m.sizes, {}),
    ]
    claims = [claim for policy, pair in pairs.items() for claim in claimed(m, m.experiment.title, *pair, {CURVE: gains[policy]}, False)]
    return Section(parts, claims)


def against(base: str) -> Callable[[Measured, Page], Section]:
    """Who chose what is learned from, each against one of them."""

    def section(m: Measured, page: Page) -> Section:
        _, whole = differences(m, {name: base for name in m.arms if name != base})
        says = [f"Over the whole curve `{name}` is {told(d)} over `{base}`{verdict(d)}." for name, d in whole.items()]
        return Section([" ".join(says), f1_table(m.arms, m.sizes, {}), *noted(m)])

    return section


def longer_training(m: Measured, page: Page) -> Section:
    """Epochs without any augmentation, with `sub` of the main curves beside them."""
    base, start = "none epochs=10", m.sizes[0]
    arms, main = dict(m.arms), page.arms("conll03-main")
    if "sub" in main:
        arms["sub"] = main["sub"].only(m.experiment.seeds)
    if base not in arms or len(m.arms) < 2:
        return Section([f1_table(arms, m.sizes, {})])
    one, two = (
        {name: compare(series, arms[base], measure) for name, series in arms.items() if name != base}
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
    parts = [" ".join(says), figure(m, page, drawn), f1_table(arms, m.sizes, {}), tests_table(first, whole, start, f"`{base}`")]
    return Section(parts, instead=[line + "."])


def settings(m: Measured, page: Page) -> Section:
    """Settings of SeqMix, each against `none` at its own steps; also any sweep file that has no section of its own."""
    pairs = {name: base for name in m.arms if (base := baseline(m, name))}
    (first, whole), start = differences(m, pairs), m.sizes[0]
    paper, arms = page.paper.get(m.experiment.name, {}), dict(m.arms)
    if m.experiment.name == "larger-encoder":  # nothing of it is in the main curves, so those stand beside it
        paper = page.paper["conll03-main"]
        arms |= {f"{name}, starter": s.only(m.experiment.seeds) for name, s in page.arms("conll03-main").items() if name in m.arms}
    parts = [f1_table(arms, m.sizes, paper)]
    if not first:
        return Section(parts)
    says = [f"At {start:,} sentences {ends(first)} against step-matched `none`, over the whole curve {ends(whole)};"]
    says += [
        f"{shown_in({f'at {start:,}': first, 'over the curve': whole})}.",
        standing(m, page, whole),
        str(paper.get("says", "")),
        *hardly_made(m),
    ]
    if len(first) == 1:
        (d,), (across,) = first.values(), whole.values()
        says = [f"At {start:,} sentences `{next(iter(first))}` is {told(d)} over step-matched `none`{verdict(d)}.{caveat(d)}"]
        says += [f"Over the whole curve it is {told(across)}{verdict(across)}."]
        says += [beside_starter(arms, m.sizes)] if m.experiment.name == "larger-encoder" else []
    plain = list(dict.fromkeys(pairs.values()))
    drawn = {name: series for name, series in m.arms.items() if name in pairs or name == plain[0]}
    bands = tuple(drawn) if len(drawn) <= 4 else (plain[0],)
    parts = [" ".join(filter(None, says)), figure(m, page, overview(drawn, m.sizes, first, whole, "step-matched none", bands)), *parts]
    both = {name: {f"at {start:,} sentences": first[name], CURVE: whole[name]} for name in first}
    claims = [claim for name in first for claim in claimed(m, m.experiment.title, name, pairs[name], both[name], False)]
    return Section([*parts, tests_table(first, whole, start)], claims)


def beside_starter(arms: Mapping[str, Series], sizes: Sequence[int]) -> str:
    """The larger encoder against the starter, both without augmentation."""
    if "none, starter" not in arms:
        return ""
    over = [compare(arms["none"], arms["none, starter"], measure) for measure in (f1_at(sizes[0]), area(sizes))]
    return (
        f"Without augmentation it is {spread(over[0])} over the starter at {sizes[0]:,} sentences and {spread(over[1])} over the whole "
        "curve: at its learning rate of 5e-5, the default for encoders other than the starter, so few steps are not enough for it."
    )


def standing(m: Measured, page: Page, whole: Family) -> str:
    """Where the setting of the main curves, the paper's, comes out among the others."""
    main = page.measured.get("conll03-main")
    own = next((name for name in whole if m.arm(name).digest == main.arm("sub").digest), None) if main else None
    if own is None:
        return ""
    ranked = sorted(whole, key=lambda name: -m.arms[name].interval(area(m.sizes)).mean)
    text = f"The setting of the main curves, `{own}`, is number {ranked.index(own) + 1} of {len(ranked)} by area"
    over = compare(m.arms[ranked[0]], m.arms[own], area(m.sizes))
    return f"{text}." if ranked[0] == own else f"{text}; the first, `{ranked[0]}`, chosen after the fact, is {spread(over)} over it."


def baseline(m: Measured, name: str) -> str | None:
    """The arm without augmentation at the same steps: that at the same point of the grid, else `none`; None for those themselves."""
    if name == "none" or name.startswith("none "):
        return None
    own = f"none{name.removeprefix(m.arm(name).family)}"
    return next((base for base in (own, "none") if base in m.arms), None)


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
