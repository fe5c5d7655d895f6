"""Write the measured part of docs/results.md, and its figures, from results/*.csv. Nothing else of the page is touched.

    python scripts/results.py

A sweep file in experiments/ is a section. What a section says is chosen by rules from its numbers: a difference is "shown" where Wilcoxon's
and the permutation test both give p < 0.05 after Holm's correction over the section's comparisons; else it is reported and not claimed. The
summary corrects once more, over all the comparisons it chooses from.
"""

from __future__ import annotations

import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mode

from results_best import best_recipe, levers
from results_devices import devices, on_cpu
from results_glance import glance
from results_main import longer_training, main_curves
from results_numbers import (
    LEVEL,
    MARGIN,
    Measured,
    compare,
    corrected,
    f1_at,
    measure_all,
    read_tables,
    unknown_data,
)
from results_sections import CURVE, NAMES, Claim, Page, Section, noted
from results_settings import against, by_policy, settings
from results_tried import tried
from results_words import f1_row, f1_table, heads, p_value, paper_row, signed, spread, table, told
from seqmix.errors import DataError

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
MAIN = ("conll03-main", "webpage-main", "genia-main")
ORDER = (
    *MAIN,
    "epochs",
    "policies-slice",
    "policies-pool",
    "policies-webpage",
    "policies-genia",
    "rate",
    "score-range",
    "window",
    "alpha",
    "table",
    "larger-encoder",
    "larger-lm",
    "proxy",
    "best",
    "best-curves",
    "levers",
    "devices",
)
KINDS: dict[str, Callable[[Measured, Page], Section]] = {
    **dict.fromkeys(MAIN, main_curves),
    **dict.fromkeys(("policies-slice", "policies-pool"), by_policy),
    "epochs": longer_training,
    **dict.fromkeys(("policies-webpage", "policies-genia"), against("random")),
    "proxy": against("its own choice"),
    "best-curves": against("conll03 none"),
    "best": best_recipe,
    "levers": levers,
    "devices": devices,
}
POLICIES = {
    "random": "random",
    "lc": "LC",
    "nte": "NTE",
    "qbc": "QBC",
    "sub": "sub",
}  # as the paper calls them
ASKED = {  # where each data set's own are, and what they are called there
    "conll03-main": (
        "policies-slice",
        "`none`",
        {policy: f"{policy} variant=none" for policy in ("random", "lc", "qbc")},
    ),
    "webpage-main": (
        "policies-webpage",
        "`none at 10 epochs`",
        {"random": "random", "lc": "lc_prime", "qbc": "qbc"},
    ),
    "genia-main": (
        "policies-genia",
        "`none at 10 epochs`",
        {"random": "random", "lc": "lc_prime", "qbc": "qbc"},
    ),
}
READING = """F1 in percent on test, mean ± 95 % interval over n seeds. Differences are paired by seed, over the seeds that both arms have, with a 95 % interval; all intervals are Student's t. "Won" counts the
seeds in which the arm is higher. p is Wilcoxon's signed rank and a permutation of signs; in brackets after Holm's correction over the comparisons of the section. A section calls a difference *shown* where both are under 0.05 after that
correction. The summary, which chooses from all sections, is stricter: it corrects once over all comparisons of SeqMix that have 6 pairs or more, and gives the larger p. With 5 pairs neither test can give less than 0.0625, so an experiment
with 5 seeds cannot show a single arm's difference; its intervals say how large it could be. Intervals hold the seeds' spread and not the test sets': WebPage's has 148 spans, which alone is worth some F1 points for all arms alike. The first points of the main curves lie
where a few more steps are worth points, and arms of different sizes had other orders of batches, so that they say little. (The paper's own test has N = 6, the six points of one averaged curve, not seeds.) The area is the mean height of the curve.
`none` takes as many optimizer steps as the augmented arms; only `none at 10 epochs` does not, and that is what the paper compares with. The paper's encoder is BERT-base, ours the starter, a fifth of its size: compare gains, not heights. The paper's numbers are in italics.
Each sweep's `results.csv` is kept as `results/NAME.csv`; `make results` writes this part and its figures from there."""


def main() -> None:
    """The page of this repository."""
    write_page(ROOT / "experiments", ROOT / "results", ROOT / "docs")
    runs = read_tables(ROOT / "results")
    if unknown := unknown_data(runs):
        print(
            f"{unknown} of {len(runs)} runs have no digest of the data they read, so they are matched by its name",
            file=sys.stderr,
        )


def write_page(experiments: Path, results: Path, docs: Path) -> None:
    """Replace what stands between the markers of docs/results.md."""
    file = docs / "results.md"
    text = file.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise DataError(
            f"expected one {BEGIN} and one {END} after it, around the part to write", file
        )
    paper = tomllib.loads((ROOT / "results" / "paper.toml").read_text(encoding="utf-8"))
    page = Page(measure_all(experiments, results), paper, docs / "img", results)
    written = f"{text[: text.index(BEGIN)]}{BEGIN}\n{generated(page)}\n{text[text.index(END) :]}"
    if written != text:
        file.write_text(written, encoding="utf-8")


def generated(page: Page) -> str:
    """The whole part: the summary, how to read it, a section for each sweep file, dev tables and times."""
    names = sorted(
        page.measured, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name)
    )
    sections: list[Section] = []
    bodies: list[str] = []
    for name in names:
        m = page.measured[name]
        bodies.append(f"## {m.experiment.title}")
        if m.begun:
            bodies += [
                "Begun; nothing is concluded from so few seeds.",
                f1_table(m.arms, m.sizes, {}),
                *noted(m),
                *remarks(m, page),
                f"`{command(m)}`",
            ]
        elif m.made:
            section = KINDS.get(name, settings)(m, page)
            sections.append(section)
            bodies += [*section.parts, *remarks(m, page), f"`{command(m)}`"]
        else:
            bodies.append(f"not measured yet: `{command(m)}`")
    missing = [name for name in names if not page.measured[name].made or page.measured[name].begun]
    short = [
        f"`{name}` has {least} of {len(m.experiment.seeds)}"
        for name, m in page.measured.items()
        if m.made
        and name not in missing
        and (least := min(len(series.runs) for series in m.arms.values())) < len(m.experiment.seeds)
    ]
    return "\n\n".join(
        [
            "## In short",
            *filter(None, [glance(page)]),
            in_short(sections, missing, short),
            "## How to read this",
            READING,
            *bodies,
            *tried(page.results),
            *dev_tables(page),
            *times(page),
        ]
    )


def in_short(sections: Sequence[Section], missing: Sequence[str], short: Sequence[str]) -> str:
    """The summary, every line of it chosen by the numbers."""
    claims: dict[tuple[str, ...], Claim] = {}
    for claim in (claim for section in sections for claim in section.claims):
        claims.setdefault(claim.key, claim)
    enough = {
        name: claim
        for name, claim in enumerate(claims.values())
        if claim.difference.least_p < LEVEL
    }
    together = corrected(
        {str(name): claim.difference for name, claim in enough.items()}
    )  # one family: the summary chooses from all of them
    tested = [replace(claim, difference=together[str(name)]) for name, claim in enough.items()]
    shown = [claim for claim in tested if claim.difference.shown]
    rest = [claim for claim in tested if not claim.difference.shown]
    others = sorted(claim.difference.mean for claim in claims.values() if not claim.named)
    count = (
        [
            f"{len(others)} comparisons by variant, policy and setting: {signed(others[0])} to {signed(others[-1])}"
        ]
        if others
        else []
    )
    few = len(claims) - len(enough)
    count += (
        [f"{few} of all {len(claims)} have 5 pairs or fewer, which can show nothing"] if few else []
    )
    least = min((max(claim.difference.holm) for claim in tested), default=math.nan)
    none = f"in none of {len(tested)} comparisons with training without it, corrected over all of them (smallest p {p_value(least)})"
    topics = {
        "SeqMix helps": _grouped([claim for claim in shown if claim.difference.mean > 0]) or [none],
        "It hurts": _grouped([claim for claim in shown if claim.difference.mean < 0])
        or ["in none of them"] * bool(tested),
        "How large it can be": bounded(claims.values()),
        "No difference is shown": [*_grouped([claim for claim in rest if claim.named]), *count],
        "How much is extra training": [line for section in sections for line in section.extra],
        "What helps instead": [line for section in sections for line in section.instead],
        "Fewer seeds than asked for": [", ".join(short)] if short else [],
        "Not measured yet, or only begun": [", ".join(f"`{name}`" for name in missing)]
        if missing
        else [],
    }
    return "\n".join(_item(topic, lines) for topic, lines in topics.items() if lines)


def bounded(claims: Iterable[Claim]) -> list[str]:
    """How many of the comparisons with plain training over a whole curve leave no room for a difference that matters."""
    over = [
        claim.difference
        for claim in claims
        if claim.key[-1] == CURVE and "over `duplicate`" not in claim.what
    ]
    over = [d for d in over if d.interval.known]
    within, below = sum(d.negligible for d in over), sum(d.interval.high < MARGIN for d in over)
    says = f"of {len(over)} comparisons with `none` over a whole curve, which share seeds and controls, {within} have a 90 % interval inside "
    return (
        [
            f"{says}±{MARGIN:.0f} F1 (two one-sided tests at 5 %), and {below} a 95 % interval below +{MARGIN:.0f}"
        ]
        if over
        else []
    )


def dev_tables(page: Page) -> list[str]:
    """The paper's three tables of dev F1 with ours beside them."""
    parts = [
        "From the same runs as the sections above. `none` takes the steps of `sub`; the paper's baselines do not. LC has a CRF head on "
        "CoNLL-03; on WebPage and triggers it is LC′, for the linear head that the other rows have."
    ]
    for name in MAIN:
        if not (arms := page.arms(name)):
            continue
        m, paper = page.measured[name], page.paper[name]
        ours = {
            "nte": {
                f"NTE, `{arm}`": arms[arm] for arm in ("none", "none at 10 epochs") if arm in arms
            }
        }
        ours["sub"] = {"NTE, `sub`": arms["sub"]} if "sub" in arms else {}
        experiment, arm, policies = ASKED[name]
        found = {policy: page.arms(experiment).get(own) for policy, own in policies.items()}
        ours |= {
            policy: {f"{POLICIES[policy]}, {arm}": series}
            for policy, series in found.items()
            if series
        }
        rows = []
        for label, values in paper["dev"].items():
            rows += [
                f1_row(arm, series, m.sizes, "dev") for arm, series in ours.get(label, {}).items()
            ]
            rows.append(paper_row(POLICIES[label], values, m.sizes))
        parts.append(table(["dev F1", "n", *heads(m.sizes, paper), "area"], rows))
        if {"sub", "none", "none at 10 epochs"} <= arms.keys():
            over, unmatched = (
                compare(arms["sub"], arms[base], f1_at(m.sizes[0], "dev"))
                for base in ("none", "none at 10 epochs")
            )
            theirs = f"in the paper's table, {paper['name']}, {signed(paper['dev']['sub'][0] - paper['dev']['nte'][0])} over NTE"
            says = f"{NAMES[m.data]} at {m.sizes[0]:,} sentences: `sub` is {told(over)} over `none`"
            parts.append(f"{says} and {spread(unmatched)} over `none at 10 epochs`; {theirs}.")
    return ["## Dev F1, the paper's tables", *parts] if len(parts) > 1 else []


def times(page: Page) -> list[str]:
    """Wall-clock of a run beside the paper's."""
    rows = []
    for name in MAIN:
        everything = [
            list(rounds.values())
            for series in page.arms(name).values()
            for rounds in series.runs.values()
        ]
        if everything:
            device = mode(str(run[0]["device"]) for run in everything)
            runs = [run for run in everything if str(run[0]["device"]) == device]
            spent = [sum(float(row["seconds"] or 0) for row in run) for run in runs]
            side = [int(run[0]["workers"] or 1) for run in runs]
            shares = [seconds / workers for seconds, workers in zip(spent, side, strict=True)]
            paper = page.paper[name]
            theirs = f"*{paper['seconds']:,} s ({paper['name']}, P100)*"
            beside = "–".join(map(str, sorted({min(side), max(side)})))
            whole, share = (
                f"{sum(own) / len(own):.{digits}f} s" for own, digits in ((spent, 0), (shares, 1))
            )
            rows.append(
                [
                    NAMES[page.measured[name].data],
                    str(len(runs)),
                    device,
                    beside,
                    whole,
                    share,
                    theirs,
                ]
            )
    header = [
        "data",
        "runs",
        "device",
        "side by side",
        "a run, beside the others",
        "a run's share of the device",
        "paper",
    ]
    about = "From the same runs: six trainings and all that is between them, mean over all arms on the device that most ran on; "
    about += "a run's share is its time divided by the number side by side."
    return ["## Time of a whole run", about, table(header, rows)] if rows else []


def command(m: Measured) -> str:
    """The sweep that makes the table."""
    name, configs = m.experiment.name, [arm.config for arm in m.experiment.arms]
    outside = any(
        str(model).startswith("models/")
        for config in configs
        for model in (config.tagger.encoder, config.augment.lm)
    )
    reuse = (
        "".join(f" --reuse results/{source}.csv" for source in sorted(set(m.borrowed.values())))
        if m.made
        else ""
    )
    side = [
        int(row["workers"] or 1)
        for s in m.arms.values()
        for run in s.runs.values()
        for row in run.values()
        if row["experiment"] == name
    ]
    models, workers = " --models MODELS" if outside else "", mode(side) if side else 16
    return f"seqmix sweep experiments/{name}.toml --data DATA{models} --out sweeps/{name} --workers {workers}{reuse}"


def remarks(m: Measured, page: Page) -> list[str]:
    """What is missing or comes from elsewhere."""
    texts = []
    for source in dict.fromkeys(m.borrowed.values()):
        own = [f"`{arm}`" for arm, where in m.borrowed.items() if where == source]
        texts.append(f"Runs with the same config are taken from {source}: {', '.join(own)}.")
    full = max(len(m.experiment.seeds), *(len(series.runs) for series in m.arms.values()))
    fewer = [
        f"`{arm}` {len(series.runs)}" for arm, series in m.arms.items() if len(series.runs) < full
    ]
    texts += [f"Seeds are missing: {', '.join(fewer)} of {full}."] if fewer else []
    texts += by_cpu(m, page)
    texts += (
        [f"Not measured yet: {', '.join(f'`{arm}`' for arm in m.missing)}."] if m.missing else []
    )
    texts += (
        [f"{m.stale} runs were made with another config than the file has now."] if m.stale else []
    )
    return [" ".join(texts)] if texts else []


def by_cpu(m: Measured, page: Page) -> list[str]:
    """Which runs a CPU made."""
    there = {arm: len(on_cpu(series).runs) for arm, series in m.arms.items()}
    if not any(there.values()):
        return []
    if all(count == len(m.arms[arm].runs) for arm, count in there.items()):
        return ["All runs on a CPU, in float32."]
    told = ", ".join(
        f"{count} of {len(m.arms[arm].runs)} runs of `{arm}`"
        for arm, count in there.items()
        if count
    )
    link = ""
    if "devices" in page.measured:
        title = page.measured["devices"].experiment.title
        link = f"; what that changes in plain training: [{title}](#{_anchor(title)})"
    return [f"On a CPU, in float32: {told}; the others on a GPU, in bf16{link}."]


def _anchor(title: str) -> str:
    """As Markdown is rendered: punctuation goes, every space is a hyphen."""
    return re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")


def _grouped(claims: Sequence[Claim]) -> list[str]:
    places = dict.fromkeys(claim.where for claim in claims)
    return [
        f"{place}: {'; '.join(str(claim) for claim in claims if claim.where == place)}"
        for place in places
    ]


def _item(topic: str, lines: Sequence[str]) -> str:
    lines = [line[0].upper() + line[1:] for line in lines]
    if len(lines) == 1:
        return f"- **{topic}:** {lines[0].rstrip('.')}."
    return "\n".join([f"- **{topic}:**", *(f"  - {line.rstrip('.')}." for line in lines)])


if __name__ == "__main__":
    main()
