"""`seqmix augment`: labeled sentences mixed from labeled ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from seqmix.app.config import parse_changes
from seqmix.app.console import emit, say
from seqmix.app.options import Data, Engine, Read, Seed, parse_read, settings_option
from seqmix.app.reading.data import drawn, labeled_data
from seqmix.augment.settings import AugmentSettings
from seqmix.data import formats
from seqmix.data.augmented import Augmentation, hubness, new_tokens
from seqmix.data.files import replacing, write_text
from seqmix.data.overwriting import refuse_source
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.report.case import as_page, as_text, cases
from seqmix.report.markup import refuse_other_file as refuse_other_page
from seqmix.scale.augment_parts import augment_in_parts
from seqmix.scale.executors import executor_of

if TYPE_CHECKING:
    from seqmix.protocols import Augmenter
    from seqmix.scale.local_executor import Executor

PAIRS, FIGURES, PAGE = "pairs", "figures", ".html"  # what --explain takes
Out = Annotated[
    Path | None,
    typer.Option(help="Where to write the new sentences: JSONL of tokens, with lineage."),
]
Variant = Annotated[
    str,
    typer.Option(
        help="whole, sub, label (SeqMix), mention, token, shuffle, duplicate (baselines) "
        "or mention+sub."
    ),
]
Rate = Annotated[float, typer.Option(help="New sentences for each labeled one (r).")]
Explain = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT",
        help="pairs prints each pair as in the paper's case study, including rejected ones; "
        "FILE.html writes the same as a page; figures prints statistics. Repeatable.",
    ),
]
Encoder = Annotated[str, typer.Option(help="The encoder whose embeddings form the table of words.")]
LanguageModel = Annotated[
    str, typer.Option(help="The language model: starter, a Hugging Face name or a folder.")
]
Change = Annotated[
    list[str] | None,
    settings_option(
        "window=3, alpha=2, score_range=5%,95%, table=contextual, distance=csls, "
        "windows=spans or weight=0.5 (a fixed λ): the keys of the section augment of a config"
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(help="Use only this many sentences, drawn at random with the seed."),
]
PartSize = Annotated[
    int | None,
    typer.Option(help="Augment in separate parts of this many sentences (usually 5000)."),
]
Workers = Annotated[int, typer.Option(min=1, help="Parts at a time, each in its own process.")]


def augment(
    data: Data,
    out: Out = None,
    rate: Rate = 0.2,
    variant: Variant = "sub",
    seed: Seed = 0,
    explain: Explain = None,
    encoder: Encoder = "starter",
    lm: LanguageModel = "starter",
    limit: Limit = None,
    part_size: PartSize = None,
    workers: Workers = 1,
    engine: Engine = "local",
    change: Change = None,
    read: Read = "",
) -> None:
    """Generate labeled sentences from labeled ones.

    It needs neither a tagger nor active learning.
    """
    explain = explain or []
    _check(rate, out, explain)
    _check_places(out, explain, data)
    settings = _settings(variant, lm, parse_changes(change))
    executor = _executor(part_size, settings.table, workers, engine)
    rng = np.random.default_rng(seed)
    sentences = drawn(labeled_data(data, parse_read(read)), limit, rng)
    table = _table(settings, encoder, sentences, rng)
    n = round(rate * len(sentences))
    trace = any(what != FIGURES for what in explain)
    build = _builder(settings, encoder, sentences, table, trace, part_size is not None)
    if part_size is None:
        generated = build().augment(sentences, n, rng)
    else:
        generated = augment_in_parts(build, sentences, n, rng, part_size, executor, workers)
    if out is not None:
        _write(generated, out)
    written = f" and written to {out}" if out else ""
    reason = f": {generated.reason}" if generated.reason else ""
    say(f"{len(generated)} of {generated.asked} sentences generated{written}{reason}")
    _explain(explain, generated, sentences, data, len(table) if table is not None else 0)


def _check(rate: float, out: Path | None, explain: Sequence[str]) -> None:
    if not 0 < rate <= 100:
        raise ConfigError(f"--rate must lie above 0 and be at most 100; got {rate:g}")
    for what in explain:
        if what not in (PAIRS, FIGURES) and not what.endswith(PAGE):
            raise ConfigError(f"--explain must be pairs, figures or FILE.html; got {what!r}")
    if out is None and not explain:
        raise ConfigError("say what to do with the sentences: --out FILE or --explain pairs")


def _check_places(out: Path | None, explain: Sequence[str], data: str) -> None:
    """Fail before the work if something else is where its results go."""
    for page in (Path(what) for what in explain if what.endswith(PAGE)):
        refuse_source(page, data)
        refuse_other_page(page)
    if out is not None:
        refuse_source(out, data)
        formats.refuse_other_file(out, formats.FORMATS["jsonl-tokens"])


def _settings(variant: str, lm: str, changes: dict[str, Any]) -> AugmentSettings:
    """Check the settings and return them."""
    for option in ("variant", "lm", "rate"):
        if option in changes:
            raise ConfigError(f"--set {option}: give --{option} instead")
    if variant == "none":
        raise ConfigError("--variant none generates nothing; choose sub, for example")
    return AugmentSettings(**{**changes, "variant": variant, "lm": lm})


def _builder(
    settings: AugmentSettings,
    encoder: str,
    sentences: Sequence[Sentence],
    table: Any,
    trace: bool,
    in_parts: bool,
) -> Callable[[], Augmenter]:
    """Return a function that builds the augmenter, in a worker too where it works in parts."""
    from seqmix.app.build import augmenter_again, build_augmenter
    from seqmix.augment.seqmix import characters

    # parts share the alphabet of all
    parts: dict[str, Any] = {"trace": trace, "alphabet": characters(sentences)}
    if not in_parts:
        return partial(build_augmenter, settings, table=table, **parts)
    starts = None if table is None else table.starts
    return partial(augmenter_again, settings, encoder, starts, parts)


def _table(
    settings: AugmentSettings,
    encoder: str,
    sentences: Sequence[Sentence],
    rng: np.random.Generator,
) -> Any:
    """Return the table of words, or None for a variant that needs none."""
    from seqmix.app.build import build_table

    if not settings.mixes:
        return None
    table = build_table(settings.table, encoder, settings.distance, sentences, rng)
    return table.narrowed(sentences, settings.seen, settings.alphabetic, settings.min_count)


def _executor(part_size: int | None, table: str, workers: int, engine: str) -> Executor | None:
    """Return who works on the parts; None where this process does it all."""
    alone = workers == 1 and engine == "local"
    if part_size is None and not alone:
        raise ConfigError(
            "workers share parts among them: give the size of a part with --part-size 5000"
        )
    if part_size is not None and table != "encoder":
        raise ConfigError(
            "--part-size needs table=encoder, which every worker can build for itself; "
            f"got {table!r}"
        )
    return None if alone else executor_of(engine)


def _write(generated: Augmentation, out: Path) -> None:
    with replacing(out) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in generated:
            file.write(json.dumps(sentence.to_record(), ensure_ascii=False) + "\n")


def _explain(
    explain: Sequence[str],
    generated: Augmentation,
    sentences: Sequence[Sentence],
    name: str,
    entries: int,
) -> None:
    """Print or write what --explain asked for."""
    pairs = cases([*generated, *generated.rejected], sentences)
    if PAIRS in explain:
        emit("\n\n".join(as_text(case) for case in pairs))
    for page in (what for what in explain if what.endswith(PAGE)):
        write_text(Path(page), as_page(pairs, f"SeqMix on {name}"))
        say(f"explained in {page}")
    if FIGURES in explain:
        lines = figures(generated, sentences, entries).items()
        emit("\n".join(f"{name}: {value}" for name, value in lines))


def figures(generated: Augmentation, sentences: Sequence[Sentence], entries: int) -> dict[str, Any]:
    """Return how many sentences there are, how diverse, how hub-ridden and how plausible."""
    new = new_tokens(generated)
    hubs = hubness(new, entries)
    scores = [s.lineage.score for s in generated if s.lineage.score is not None]
    commonest = max(set(new), key=lambda word: (new.count(word), word), default="–")
    words = {token for sentence in sentences for token in sentence.tokens}
    parents = {parent for sentence in generated for parent in sentence.lineage.parents}
    scored = generated.counts.get("scored")
    unseen = np.mean([token not in words for token in new]) if new else 0.0
    quantiles = np.quantile(scores, [0.05, 0.5, 0.95]) if scores else ()
    return {
        "asked": generated.asked,
        "generated": len(generated),
        "reason for fewer": generated.reason or "–",
        **dict(sorted(generated.counts.items())),
        "accepted of scored": f"{len(generated) / scored:.2f}" if scored else "–",
        "distinct parents / outputs": f"{len(parents) / len(generated):.2f}" if generated else "–",
        "generated tokens": len(new),
        "largest share of one entry": f"{hubs['largest_share']:.3f} ({commonest})",
        "skewness of entries": f"{hubs['skewness']:.1f}",
        "tokens new to the data": f"{unseen:.2f}" if new else "–",
        "perplexity (5 %, median, 95 %)": ", ".join(f"{q:.0f}" for q in quantiles) or "–",
    }
