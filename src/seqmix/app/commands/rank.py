"""`seqmix pool build` and `info`, and `seqmix score`: the best of a pool that no memory would hold."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.console import emit, err, say
from seqmix.app.read_data import Comment, FormatName, Misaligned, Quiet, TokenColumn, format_options
from seqmix.data.formats import Options
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError
from seqmix.scale.build_pool import SHARD, build_pool
from seqmix.scale.executors import AS_MANY_AS_FIT, crew_of
from seqmix.scale.jsonl_source import held, write_blocks
from seqmix.scale.pool import PoolOnDisk, is_pool, open_pool
from seqmix.scale.shards import Unit
from seqmix.scale.sources import fingerprint, read_source, units_in_place

pool = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Pools of any size as folders on disk."
)
_EVERY = 10.0  # seconds between two lines of progress
_NOT_ALONE: Mapping[str, str] = {  # policies that cannot score one sentence by itself, and why
    "kmeans": "it clusters the pool",
    "coreset": "a sentence's score hangs on those chosen before it",
    "badge": "it draws sentences that differ from each other",
    "fluctuation": "it needs the predictions of earlier rounds, which a saved tagger does not have",
}

Engine = Annotated[str, typer.Option(help="local (processes of this machine, or one GPU) or ray.")]
Address = Annotated[
    str | None,
    typer.Option(
        help="The Ray cluster to use: auto or host:port; a new one on this machine without."
    ),
]


@pool.command(epilog="Example: seqmix pool build crawl/ more.parquet --out pool")
def build(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT...",
            help="Files, folders of files, samples or pools, in any format read or Parquet.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder the pool is written to.")],
    shard_size: Annotated[
        int, typer.Option(min=1, help="Sentences a file, rounded up to whole blocks of 2,048.")
    ] = SHARD,
    ids: Annotated[
        str,
        typer.Option(
            help="given (the data's own, or file:line) or content (a digest of the tokens)."
        ),
    ] = "given",
    format: FormatName = None,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    misaligned: Misaligned = "drop",
) -> None:
    """Write text as a pool: every sentence once, in shards that are read where they lie."""
    options = format_options(token_column=token_column, comment=comment, misaligned=misaligned)
    for text in texts:
        fingerprint(text)  # a name that is wrong is said before the others are read
    start = time.monotonic()
    sentences = (sentence for text in texts for sentence in read_source(text, format, options))
    made = _built(sentences, out, shard_size, ids, options)
    say(f"{_told(made)}, written to {out} in {time.monotonic() - start:.0f} s")


@pool.command(epilog="Example: seqmix pool info pool")
def info(
    folder: Annotated[Path, typer.Argument(metavar="POOL", help="A folder made by build.")],
    json_out: Quiet = False,
) -> None:
    """Say what is in a pool."""
    found = open_pool(folder)
    facts = {
        "sentences": found.sentences, "tokens": found.tokens, "longest": found.longest, "shards": len(found.shards), "bytes": found.bytes,
        **{f"left out, {why}": n for why, n in found.left_out.items()}, "digest": found.digest,
    }  # fmt: skip
    emit(
        json.dumps(facts)
        if json_out
        else "\n".join(f"{name}: {value}" for name, value in facts.items())
    )


def score(
    source: Annotated[
        str,
        typer.Argument(
            metavar="POOL", help="A pool made by pool build, or files or folders as it takes them."
        ),
    ],
    model: Annotated[
        list[Path], typer.Option(help="A folder written by train; several are a committee (qbc).")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Where to write the best: JSONL of id, score and tokens, the highest score first."
        ),
    ],
    policy: Annotated[
        str, typer.Option(help="A policy that scores each sentence by itself.")
    ] = "nte",
    top: Annotated[int, typer.Option(min=1, help="How many to keep.")] = 1000,
    engine: Engine = "local",
    address: Address = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes or actors, each with the model loaded once; 1, or all a Ray cluster has room for.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda; the best there is by default.")
    ] = None,
    int8: Annotated[
        bool,
        typer.Option(
            "--int8", help="On a CPU: round the weights: about half the time, nearly that order."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the policies random and bald.")] = 0,
    format: FormatName = None,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    misaligned: Misaligned = "drop",
) -> None:
    """Find the sentences of a pool that a policy would ask for; the answer is the same whatever engine and workers."""
    from seqmix.app.build import POLICIES, build_policy  # here, since it loads torch
    from seqmix.scale.ranking import Scorer, from_folders
    from seqmix.scale.ranking_job import score_units, side_folder, write_scored
    from seqmix.tagger import Tagger
    from seqmix.tagger.model_folders import describe

    rule = build_policy(policy)
    alone = ", ".join(name for name in POLICIES if name not in _NOT_ALONE)
    if policy in _NOT_ALONE:
        raise ConfigError(
            f"--policy {policy} cannot score sentences one by one: {_NOT_ALONE[policy]}; there are {alone}"
        )
    if policy == "qbc" and len(model) < 2:
        raise ConfigError(
            "--policy qbc compares the members of a committee; give --model two times or more, each its own folder"
        )
    device = (
        device if device and engine == "ray" else str(Tagger(device=device).device)
    )  # a cluster may have what we have not
    if int8 and device.startswith("cuda"):
        raise ConfigError("--int8 is for CPUs; give --device cpu, or leave it off")
    workers = workers or (1 if engine == "local" else AS_MANY_AS_FIT)
    crew = (
        None
        if engine == "local" and workers == 1 and address is None
        else crew_of(engine, address, float(device.startswith("cuda")))
    )
    options = format_options(token_column=token_column, comment=comment, misaligned=misaligned)
    if out.is_dir():
        raise ConfigError(f"--out {out} is a folder; name a file in it")
    if Path(source).is_dir() and out.absolute().is_relative_to(Path(source).absolute()):
        raise ConfigError(
            f"--out {out} lies in the folder that is read, {source}; put it elsewhere"
        )
    if policy != "qbc" and len(model) > 1:
        raise ConfigError(
            f"--policy {policy} asks one model and --model was given {len(model)} times; a committee is --policy qbc"
        )
    tags = [describe(one)["tags"] for one in model]
    other = next((one for one, own in zip(model, tags, strict=True) if own != tags[0]), None)
    if other is not None:
        raise ConfigError(
            f"the members of a committee must know the same tags in the same order; {model[0]} and {other} do not"
        )
    about = {
        "pool": fingerprint(source),
        "model": [_digest(one) for one in model],
        "policy": policy,
        "top": top,
        "seed": seed,
        "device": device,
        "int8": int8,
        "read as": [format, token_column, comment, misaligned],
    }
    scorer = Scorer(rule, from_folders(model, device, int8), top, seed)
    start = time.monotonic()
    with side_folder(out, about) as folder:
        units = units_in_place(Path(source))
        if units is None:
            units = _copied(source, folder, format, options)
        total = sum(map(len, units))
        if total == 0:
            raise DataError("expected sentences, but there are none", source)
        crewed = "one worker" if workers == 1 else f"{workers or 'as many as fit'} workers"
        say(f"scoring {total} sentences by {policy} on {device}, {crewed} ({engine})")
        with _meter("scoring", total) as update:
            best, seen = score_units(
                units, scorer, folder, crew, workers, lambda seen, done: update(done)
            )
        write_scored(best, out)
    seconds = time.monotonic() - start
    say(f"{len(best)} of {seen} sentences written to {out} after {seconds:.0f} s")


def _copied(source: str, folder: Path, format: str | None, options: Options) -> list[Unit]:
    """Files that can only be read from their start are copied, which lies beside the output until the job is done; large ones as a pool."""
    if not is_pool(folder / "pool"):
        few, many = held(read_source(source, format, options))
        if few:
            units, left_out = write_blocks(few, folder / "blocks")
            _say_counts(options)
            say(f"{source}: {sum(map(len, units))} sentences; left out: {_shown(left_out)}")
            return units
        say(
            f"{source} is large and cannot be read from the middle, so a pool is made of it first; pool build makes one that stays"
        )
        say(_told(_built(many, folder / "pool", SHARD, "given", options)))
    return list(open_pool(folder / "pool").units())


def _built(
    sentences: Iterable[Sentence], out: Path, size: int, ids: str, options: Options
) -> PoolOnDisk:
    with ExitStack() as stack:
        meters: dict[str, Callable[[int], None]] = {}

        def progress(what: str, n: int) -> None:
            if what not in meters:
                stack.pop_all().close()  # a terminal shows one at a time
                meters[what] = stack.enter_context(_meter(what))
            meters[what](n)

        made = build_pool(sentences, out, size, ids, progress)
    _say_counts(options)
    return made


def _say_counts(options: Options) -> None:
    for what, n in sorted(options.counts.items()):
        say(f"{n} {what}")


def _told(made: PoolOnDisk) -> str:
    left, shards = _shown(made.left_out), len(made.shards)
    return f"{made.sentences} sentences in {shards} shard{'s' * (shards != 1)}, {made.bytes / 2**20:.1f} MiB; left out: {left}"


def _shown(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {why}" for why, n in left_out.items()) or "none"


def _digest(model: Path) -> str:
    """What a tagger is, so that a job is not continued with another."""
    try:
        with (model / "model.safetensors").open("rb") as file:
            return file_digest(file, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", model / "model.safetensors") from error


@contextmanager
def _meter(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A function to call with how many sentences are done: a line every ten seconds with sentences a second, or a status on a terminal."""
    start = last = time.monotonic()
    before: int | None = None
    status = err.status(what) if err.is_terminal else None

    def update(done: int) -> None:
        nonlocal last, before
        now = time.monotonic()
        before = (
            done if before is None else before
        )  # what an earlier try had done says nothing about speed
        if now - last < (1 if status else _EVERY) and done != total:
            return
        last, rate = now, (done - before) / max(now - start, 1e-9)
        left = (
            f", about {(total - done) / rate:.0f} s left" if total and rate and done < total else ""
        )
        text = (
            f"{what}: {done}{f' of {total}' if total else ''} sentences, {rate:.0f} a second{left}"
        )
        status.update(text) if status else say(text)

    if status is None:
        yield update
        return
    with status:
        yield update
