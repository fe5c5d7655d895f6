"""The sections of docs/results.md on the settings of SeqMix and on who chooses the sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from results_figures import overview, policies
from results_numbers import (
    Family,
    Measured,
    Series,
    area,
    by_tokens,
    compare,
    corrected,
    f1_at,
    judged,
)
from results_sections import CURVE, Page, Section, claimed, differences, figure, hardly_made, noted
from results_words import (
    caveat,
    ends,
    f1_table,
    ps,
    score,
    shown_in,
    signed,
    spread,
    table,
    tests_table,
    told,
    verdict,
)


def settings(m: Measured, page: Page) -> Section:
    """Settings of SeqMix, each against `none` at its own steps; also any sweep file that has no section of its own."""
    pairs = {name: base for name in m.arms if (base := baseline(m, name))}
    (first, whole), start = differences(m, pairs), m.sizes[0]
    paper, arms = page.paper.get(m.experiment.name, {}), dict(m.arms)
    if (
        m.experiment.name == "larger-encoder"
    ):  # nothing of it is in the main curves, so those stand beside it
        paper = page.paper["conll03-main"]
        arms |= {
            f"{name}, starter": s.only(m.experiment.seeds)
            for name, s in page.arms("conll03-main").items()
            if name in m.arms
        }
    parts = [f1_table(arms, m.sizes, paper)]
    if not first:
        return Section(parts)
    says = [
        f"At {start:,} sentences {ends(first)} against step-matched `none`, over the whole curve {ends(whole)};"
    ]
    says += [
        f"{shown_in({f'at {start:,}': first, 'over the curve': whole})}.",
        standing(m, page, whole),
        str(paper.get("says", "")),
        *hardly_made(m),
    ]
    if len(first) == 1:
        (d,), (across,) = first.values(), whole.values()
        says = [
            f"At {start:,} sentences `{next(iter(first))}` is {told(d)} over step-matched `none`{verdict(d)}.{caveat(d)}"
        ]
        says += [f"Over the whole curve it is {told(across)}{verdict(across)}."]
        says += [beside_starter(arms, m.sizes)] if m.experiment.name == "larger-encoder" else []
    plain = list(dict.fromkeys(pairs.values()))
    drawn = {name: series for name, series in m.arms.items() if name in pairs or name == plain[0]}
    bands = tuple(drawn) if len(drawn) <= 4 else (plain[0],)
    parts = [
        " ".join(filter(None, says)),
        figure(m, page, overview(drawn, m.sizes, first, whole, "step-matched none", bands)),
        *parts,
    ]
    both = {name: {f"at {start:,} sentences": first[name], CURVE: whole[name]} for name in first}
    claims = [
        claim
        for name in first
        for claim in claimed(m, m.experiment.title, name, pairs[name], both[name], False)
    ]
    return Section([*parts, tests_table(first, whole, start)], claims)


def beside_starter(arms: Mapping[str, Series], sizes: Sequence[int]) -> str:
    """The larger encoder against the starter, both without augmentation."""
    if "none, starter" not in arms:
        return ""
    over = [
        compare(arms["none"], arms["none, starter"], measure)
        for measure in (f1_at(sizes[0]), area(sizes))
    ]
    return (
        f"Without augmentation it is {spread(over[0])} over the starter at {sizes[0]:,} sentences and {spread(over[1])} over the whole "
        "curve, at 5e-5, the default rate for encoders other than the starter. No other rate and no longer training was run, so that this "
        "says nothing of larger encoders in general."
    )


def standing(m: Measured, page: Page, whole: Family) -> str:
    """Where the setting of the main curves, the paper's, comes out among the others."""
    main = page.measured.get("conll03-main")
    own = (
        next((name for name in whole if m.arm(name).digest == main.arm("sub").digest), None)
        if main
        else None
    )
    if own is None:
        return ""
    ranked = sorted(whole, key=lambda name: -m.arms[name].interval(area(m.sizes)).mean)
    text = f"The setting of the main curves, `{own}`, is number {ranked.index(own) + 1} of {len(ranked)} by area"
    over = compare(m.arms[ranked[0]], m.arms[own], area(m.sizes))
    return (
        f"{text}."
        if ranked[0] == own
        else f"{text}; the first, `{ranked[0]}`, chosen after the fact, is {spread(over)} over it."
    )


def baseline(m: Measured, name: str) -> str | None:
    """The arm without augmentation at the same steps: that at the same point of the grid, else `none`; None for those themselves."""
    if name == "none" or name.startswith("none "):
        return None
    own = f"none{name.removeprefix(m.arm(name).family)}"
    return next((base for base in (own, "none") if base in m.arms), None)


def by_policy(m: Measured, page: Page) -> Section:
    """Policies × {none, sub}: what SeqMix adds to each, and what each is worth without it."""
    subs = {
        name.removesuffix(" variant=sub"): name for name in m.arms if name.endswith(" variant=sub")
    }
    pairs = {
        policy: (sub, plain)
        for policy, sub in subs.items()
        if (plain := f"{policy} variant=none") in m.arms
    }
    pairs = {
        policy: pair
        for policy, pair in pairs.items()
        if m.arms[pair[0]].runs.keys() & m.arms[pair[1]].runs.keys()
    }
    if not pairs:
        return Section([f1_table(m.arms, m.sizes, {})])
    height = area(m.sizes)
    gains = corrected(
        {
            policy: compare(m.arms[sub], m.arms[plain], height)
            for policy, (sub, plain) in pairs.items()
        }
    )
    alike = {
        policy: "random-crf" if m.arm(plain).config.tagger.head == "crf" else "random"
        for policy, (_, plain) in pairs.items()
    }
    worth = {
        policy: compare(m.arms[pairs[policy][1]], m.arms[pairs[base][1]], height)
        for policy, base in alike.items()
        if base in pairs and base != policy
    }
    (low, high), per_token = by_tokens(m.arms[plain] for _, plain in pairs.values())
    dear = {
        policy: compare(m.arms[pairs[policy][1]], m.arms[pairs[alike[policy]][1]], per_token)
        for policy in worth
    }
    seeds = sorted(set.intersection(*(set(d.by_seed) for d in gains.values())))
    mean = judged(
        {seed: sum(d.by_seed[seed] for d in gains.values()) / len(gains) for seed in seeds}
    )
    theirs = page.paper.get(m.experiment.name, {}).get("gain", {})
    rows = []
    for policy, d in gains.items():
        sub, plain = (score(m.arms[name].interval(height)) for name in pairs[policy])
        paper, over = (
            f"*{signed(theirs[policy], 2)}*" if policy in theirs else "",
            spread(worth[policy], 2) if policy in worth else "",
        )
        token = spread(dear[policy], 2) if policy in worth else ""
        rows.append(
            [
                f"`{policy}`",
                str(d.n),
                plain,
                sub,
                spread(d, 2),
                f"{d.won} of {d.n}",
                *ps(d),
                paper,
                over,
                token,
            ]
        )
    rows.append(
        [
            "mean over policies",
            str(mean.n),
            "",
            "",
            spread(mean, 2),
            f"{mean.won} of {mean.n}",
            *ps(mean),
            "",
            "",
            "",
        ]
    )
    says = f"Over the whole curve `sub` adds {ends(gains)} to step-matched `none` with the same policy, {spread(mean)} in the mean over the"
    says += f" {len(gains)} policies; {shown_in({'': gains})}."
    if worth:
        best, cheapest = (max(own, key=lambda policy: own[policy].mean) for own in (worth, dear))
        says += f" Without augmentation `{best}` is highest against random with the same head per sentence: {told(worth[best])};"
        says += f" counted by tokens ({low:,} to {high:,}, which all pass through) it is {spread(dear[best])},"
        says += f" and `{cheapest}` is highest: {told(dear[cheapest])}."
        says += " What a person's time costs lies between the two: long sentences take longer to read, short ones have fewer mentions."
    header = [
        "policy",
        "pairs",
        "`none`, area",
        "`sub`, area",
        "`sub` over `none`",
        "won",
        "Wilcoxon p",
        "permutation p",
        "paper",
    ]
    parts = [
        says,
        figure(m, page, policies(gains, worth, theirs)),
        table([*header, "policy over random, `none`, by sentences", "the same by tokens"], rows),
        f1_table(m.arms, m.sizes, {}),
    ]
    claims = [
        claim
        for policy, pair in pairs.items()
        for claim in claimed(m, m.experiment.title, *pair, {CURVE: gains[policy]}, False)
    ]
    return Section(parts, claims)


def against(base: str) -> Callable[[Measured, Page], Section]:
    """Who chose what is learned from, each against one of them."""

    def section(m: Measured, page: Page) -> Section:
        _, whole = differences(m, {name: base for name in m.arms if name != base})
        says = [
            f"Over the whole curve `{name}` is {told(d)} over `{base}`{verdict(d)}."
            for name, d in whole.items()
        ]
        if base == "random" and whole:
            (low, high), per_token = by_tokens(m.arms[name] for name in (base, *whole))
            dear = [
                f"`{name}` {spread(compare(m.arms[name], m.arms[base], per_token))}"
                for name in whole
            ]
            says.append(
                f"Counted by labeled tokens instead ({low:,} to {high:,}, which all pass through): {'; '.join(dear)}."
            )
        return Section([" ".join(says), f1_table(m.arms, m.sizes, {}), *noted(m)])

    return section
