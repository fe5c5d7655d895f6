"""`seqmix augment`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from seqmix.app.console import emit, say
from seqmix.app.options import Engine, group
from seqmix.app.read_data import (
    Comment,
    Data,
    FormatName,
    Key,
    Misaligned,
    TagColumn,
    TokenColumn,
    drawn,
    format_options,
    labeled_data,
)
from seqmix.augment.combined import COMBINED
from seqmix.augment.pairing import VARIANTS
from seqmix.augment.replacement import METHODS
from seqmix.data.augmented import Augmentation, hubness, new_tokens
from seqmix.data.files import replacing, write_text
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.report.case import as_page, as_text, cases
from seqmix.scale.augment_parts import augment_in_parts
from seqmix.scale.executors import executor_of
from seqmix.scale.local_executor import Executor

_mixing, _judging, _words = (
    group("How sentences are mixed"),
    group("What is accepted"),
    group("The words that are generated"),
)
_large, _telling = group("Large sets"), group("What is told")


def augment(
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write the new sentences: JSONL of tokens, with lineage."),
    ] = None,
    variant: Annotated[
        str, typer.Option(help=", ".join((*VARIANTS, *METHODS, COMBINED)) + ".")
    ] = "sub",
    rate: Annotated[float, typer.Option(help="New sentences for each labeled one (r).")] = 0.2,
    alpha: Annotated[float, _mixing(help="λ ~ Beta(α, α).")] = 8.0,
    window: Annotated[int, _mixing(help="Tokens in a window (s).")] = 5,
    density: Annotated[float, _mixing(help="Share of valid tags a window needs (η0).")] = 0.6,
    score_range: Annotated[
        str,
        _judging(
            help="What is accepted: 0x,400x, how many times less probable a new word may make its parent; 0,500, perplexity itself; "
            "5%,95%, quantiles of the real ones; off."
        ),
    ] = "0x,400x",
    base: Annotated[
        str | None,
        _judging(
            help="Of the perplexity: e, or 2 as the paper writes it; 2 for whole unless given, else e."
        ),
    ] = None,
    lm: Annotated[
        str, _judging(help="The language model: starter, a Hugging Face name or a folder.")
    ] = "starter",
    encoder: Annotated[str, _words(help="Whose embeddings make the table.")] = "starter",
    table: Annotated[
        str, _words(help="Source of the table: encoder, trained or contextual.")
    ] = "encoder",
    distance: Annotated[str, _words(help="l2, cosine or csls.")] = "l2",
    seen: Annotated[bool, _words(help="Only words that occur in the data are generated.")] = False,
    alphabetic: Annotated[bool, _words(help="Only words made of letters are generated.")] = False,
    min_count: Annotated[
        int,
        _words(min=0, help="Only words that occur at least this often in the data are generated."),
    ] = 0,
    windows: Annotated[str, _mixing(help="fixed (s tokens) or spans (entity spans).")] = "fixed",
    partners: Annotated[
        str, _mixing(help="random or similar (nearest in embedding space).")
    ] = "random",
    keep_case: Annotated[
        bool, _mixing(help="A new word takes the casing of the word it replaces.")
    ] = False,
    max_uses: Annotated[
        int | None, _mixing(help="How often one sentence may serve as a parent.")
    ] = None,
    weight: Annotated[float | None, _mixing(help="A fixed λ.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(help="Use this many of the sentences, drawn at random with the seed."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same sentences.")] = 0,
    part_size: Annotated[
        int | None, _large(help="Augment parts of so many sentences by themselves (5000 is usual).")
    ] = None,
    workers: Annotated[
        int, _large(min=1, help="Parts at a time, each in a process of its own.")
    ] = 1,
    engine: Engine = "local",
    explain: Annotated[
        bool, _telling(help="Tell each pair as the paper's case study does, the rejected ones too.")
    ] = False,
    explain_html: Annotated[Path | None, _telling(help="The same as an HTML page.")] = None,
    stats: Annotated[bool, _telling(help="Print figures about what was generated.")] = False,
    format: FormatName = None,
    tag_column: TagColumn = -1,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    key: Key = "UPOS",
    misaligned: Misaligned = "error",
) -> None:
    """Generate labeled sentences from labeled ones."""
    from seqmix.app.build import (  # here, since it loads torch
        augmenter_again,
        build_augmenter,
        build_table,
        parse_score_range,
    )
    from seqmix.augment.seqmix import characters

    if not 0 < rate <= 100:
        raise ConfigError(f"--rate is {rate:g}; it must lie above 0 and be at most 100")
    if out is None and not (explain or stats or explain_html):
        raise ConfigError(
            "say what to do with the sentences: --out FILE, --explain, --explain-html FILE or --stats"
        )
    executor = _executor(part_size, table, workers, engine)
    settings: dict[str, Any] = {
        "window": window, "density": density, "alpha": alpha, "score_range": parse_score_range(score_range), "windows": windows,
        "partners": partners, "keep_case": keep_case, "max_uses": max_uses, "weight": weight,
        "trace": explain or explain_html is not None,
    }  # fmt: skip
    build_augmenter(
        variant, None, lm, base, **settings
    )  # refuses bad settings before anything is read or loaded
    options = format_options(
        tag_column=tag_column,
        token_column=token_column,
        comment=comment,
        key=key,
        misaligned=misaligned,
    )
    rng = np.random.default_rng(seed)
    sentences = drawn(labeled_data(data, format, options), limit, rng)
    mixes = variant in VARIANTS or variant == COMBINED
    words = (
        build_table(table, encoder, distance, sentences, rng).narrowed(
            sentences, seen, alphabetic, min_count
        )
        if mixes
        else None
    )
    n = round(rate * len(sentences))
    settings["alphabet"] = characters(sentences)  # of all, where parts are augmented by themselves
    if part_size is None:
        made = build_augmenter(variant, words, lm, base, **settings).augment(sentences, n, rng)
    else:
        again = partial(
            augmenter_again,
            variant,
            encoder,
            distance,
            words.starts if words is not None else None,
            lm,
            base,
            settings,
        )
        made = augment_in_parts(again, sentences, n, rng, part_size, executor, workers)
    if out is not None:
        with replacing(out) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
            for one in made:
                file.write(json.dumps(one.to_record(), ensure_ascii=False) + "\n")
    say(
        f"{len(made)} of {made.asked} sentences generated"
        + (f" and written to {out}" if out else "")
        + (f": {made.reason}" if made.reason else "")
    )
    if explain or explain_html is not None:
        told = cases([*made, *made.rejected], sentences)
        if explain:
            emit("\n\n".join(as_text(case) for case in told))
        if explain_html is not None:
            write_text(explain_html, as_page(told, f"SeqMix on {data}"))
            say(f"explained in {explain_html}")
    if stats:
        emit(
            "\n".join(
                f"{name}: {value}"
                for name, value in figures(
                    made, sentences, len(words) if words is not None else 0
                ).items()
            )
        )


def _executor(part_size: int | None, table: str, workers: int, engine: str) -> Executor | None:
    """Who works on the parts; this process alone unless more are asked for."""
    alone = workers == 1 and engine == "local"
    if part_size is None and not alone:
        raise ConfigError(
            "workers share parts among them; say how large a part is: --part-size 5000"
        )
    if part_size is not None and table != "encoder":
        raise ConfigError(
            f"--part-size goes with --table encoder, which every worker can make for itself, not with {table}"
        )
    return None if alone else executor_of(engine)


def figures(made: Augmentation, sentences: Sequence[Sentence], entries: int) -> dict[str, Any]:
    """What `--stats` prints: how many, how diverse, how hub-ridden, how plausible."""
    new = new_tokens(made)
    hubs = hubness(new, entries)
    scores = [one.lineage.score for one in made if one.lineage.score is not None]
    commonest = max(set(new), key=lambda word: (new.count(word), word), default="–")
    known = {token for sentence in sentences for token in sentence.tokens}
    return {
        "asked": made.asked,
        "generated": len(made),
        "reason for fewer": made.reason or "–",
        **dict(sorted(made.counts.items())),
        "accepted of scored": f"{len(made) / made.counts['scored']:.2f}"
        if made.counts.get("scored")
        else "–",
        "distinct parents / outputs": f"{len({p for one in made for p in one.lineage.parents}) / len(made):.2f}"
        if made
        else "–",
        "generated tokens": len(new),
        "largest share of one entry": f"{hubs['largest_share']:.3f} ({commonest})",
        "skewness of entries": f"{hubs['skewness']:.1f}",
        "tokens new to the data": f"{np.mean([token not in known for token in new]):.2f}"
        if new
        else "–",
        "perplexity (5 %, median, 95 %)": ", ".join(
            f"{q:.0f}" for q in np.quantile(scores, [0.05, 0.5, 0.95])
        )
        if scores
        else "–",
    }
