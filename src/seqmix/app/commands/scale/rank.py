"""`seqmix rank`: the sentences of a pool of any size that are most worth labeling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import count, say, throughput
from seqmix.app.options import Device, Engine, ReadOptions, parse_read, read_option
from seqmix.app.taggers import digest_of
from seqmix.data import formats
from seqmix.data.overwriting import refuse_source
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError
from seqmix.external.names import is_external, is_spacy
from seqmix.scale.build_pool import SHARD, build_pool
from seqmix.scale.executors import executor_of
from seqmix.scale.local_executor import Executor
from seqmix.scale.pool import PoolOnDisk, is_pool, open_pool
from seqmix.scale.ray_executor import AS_MANY_AS_FIT
from seqmix.scale.shards import Unit
from seqmix.scale.sources import fingerprint, held, read_source, units_in_place, write_blocks

Texts = Annotated[
    list[str],
    typer.Argument(
        metavar="TEXT...",
        help="Files, folders of files, samples or pools, in any format read or Parquet.",
    ),
]
Model = Annotated[
    list[Path] | None,
    typer.Option(help="A tagger's folder; several are a committee (qbc). Repeatable."),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Where to write the best as JSONL of id, score and tokens, best first."),
]
Policy = Annotated[str, typer.Option(help="A policy that scores each sentence by itself.")]
Top = Annotated[int, typer.Option(min=1, help="How many sentences to keep.")]
PoolFolder = Annotated[
    Path | None,
    typer.Option(
        help="Build a pool of the text in this folder and rank it; a pool that is already there "
        "is used as it is. Without --model, only build it."
    ),
]
ShardSize = Annotated[
    int,
    typer.Option(
        min=1, help="With --pool: sentences per file, rounded up to whole blocks of 2,048."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes, each with its own model; 1, or as many as a Ray cluster has room for.",
    ),
]
Int8 = Annotated[
    bool,
    typer.Option(
        "--int8",
        help="CPU only: int8 weights. About twice as fast; the ranking changes slightly.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed (used by random and bald).")]
Read = Annotated[str, read_option("ids")]
_WITHOUT_PROBABILITIES = ("tag_count", "qbc", "random")


@dataclass(frozen=True)
class Request:
    """What ranks, and on what device."""

    models: Sequence[Path]
    policy: str
    top: int
    seed: int
    device: str
    int8: bool

    def described(self) -> dict[str, object]:
        """Return what tells this job from another one."""
        return {**vars(self), "models": [digest_of(model) for model in self.models]}


def rank(
    texts: Texts,
    model: Model = None,
    out: Out = None,
    policy: Policy = "nte",
    top: Top = 1000,
    pool: PoolFolder = None,
    shard_size: ShardSize = SHARD,
    engine: Engine = "local",
    workers: Workers = None,
    device: Device = None,
    int8: Int8 = False,
    seed: Seed = 0,
    read: Read = "",
) -> None:
    """Rank text of any size and keep the sentences most worth labeling.

    Results do not depend on the engine or the number of workers.
    """
    reading = parse_read(read, "ids", misaligned="drop")
    if not model and out is None and pool is not None:
        _build(texts, pool, shard_size, reading)
        return
    if not model or out is None:
        raise ConfigError("name a tagger with --model and a file with --out")
    request = Request(model, policy, top, seed, _device(device, engine), int8)
    scorer = _scorer(request)
    _check_out(out, texts)
    workers = workers or (1 if engine == "local" else AS_MANY_AS_FIT)
    alone = engine == "local" and workers == 1
    executor = None if alone else executor_of(engine, float(request.device.startswith("cuda")))
    if pool is not None:
        texts = [str(_build(texts, pool, shard_size, reading).folder)]
    about = {"pool": [fingerprint(text) for text in texts], "read": read, **request.described()}
    _rank(texts, reading, request, scorer, about, out, engine, executor, workers)


def _rank(
    texts: Sequence[str],
    reading: ReadOptions,
    request: Request,
    scorer: Any,
    about: dict[str, object],
    out: Path,
    engine: str,
    executor: Executor | None,
    workers: int,
) -> None:
    """Score all sentences and write the best."""
    from seqmix.scale.ranking_job import score_units, side_folder, write_scored

    start = time.monotonic()
    with side_folder(out, about) as folder:
        units = units_in_place(Path(texts[0])) if len(texts) == 1 else None
        units = _copy(texts, folder, reading) if units is None else units
        total = sum(map(len, units))
        if total == 0:
            raise DataError("expected sentences, but there are none", ", ".join(texts))
        who = "one worker" if workers == 1 else f"{workers or 'as many as fit'} workers"
        say(f"ranking {total} sentences by {request.policy} on {request.device}, {who} ({engine})")
        with throughput("ranking", total) as update:
            best, seen = score_units(
                units, scorer, folder, executor, workers, lambda seen, done: update(done)
            )
        write_scored(best, out)
    seconds = time.monotonic() - start
    say(f"{len(best)} of {seen} sentences written to {out} after {seconds:.0f} s")


def _device(device: str | None, engine: str) -> str:
    """Return the device to use; a cluster may have one that this machine lacks."""
    from seqmix.tagger import Tagger

    if device and engine != "local":
        return device
    return str(Tagger(device=device).device)


def _scorer(request: Request) -> Any:
    """Return what scores a block, once it is certain that the models and the policy suit."""
    from seqmix.app.build import tagger_loader
    from seqmix.app.taggers import tags_of
    from seqmix.query.policies import POLICIES, policy_spec  # here, since it loads torch
    from seqmix.scale.ranking import Scorer

    policy, models = request.policy, request.models
    spec = policy_spec(policy)
    if not spec.alone or spec.score is None:
        alone = ", ".join(name for name, spec in POLICIES.items() if spec.alone)
        raise ConfigError(f"--policy must score each sentence by itself ({alone}); got {policy}")
    committee = "committee" in spec.needs
    if committee and len(models) < 2:
        raise ConfigError(
            f"--policy {policy} compares the members of a committee: "
            "give --model two times or more, each its own folder"
        )
    if not committee and len(models) > 1:
        raise ConfigError(f"--policy {policy} takes one model; got {len(models)}")
    if policy not in _WITHOUT_PROBABILITIES and any(map(is_spacy, models)):
        raise ConfigError(
            f"--policy {policy} ranks by probabilities, and spaCy gives none: "
            f"choose {' or '.join(_WITHOUT_PROBABILITIES)}"
        )
    if request.int8 and any(map(is_external, models)):
        raise ConfigError("--int8 is for taggers that seqmix trained; leave it off")
    if request.int8 and request.device.startswith("cuda"):
        raise ConfigError("--int8 is for CPUs: give --device cpu, or leave it off")
    tags = [tags_of(model) for model in models]
    for model, its_tags in zip(models, tags, strict=True):
        if its_tags != tags[0]:
            raise ConfigError(
                "the members of a committee must have the same tags in the same order; "
                f"{models[0]} and {model} do not"
            )
    load = tagger_loader(models, request.device, request.int8)
    return Scorer(spec.score, load, request.top, request.seed)


def _check_out(out: Path, texts: Sequence[str]) -> None:
    if out.is_dir():
        raise ConfigError(f"--out must be a file; {out} is a folder")
    refuse_source(out, *texts)
    formats.refuse_other_file(out, formats.FORMATS["jsonl-tokens"])


def _build(texts: Sequence[str], folder: Path, size: int, reading: ReadOptions) -> PoolOnDisk:
    """Build a pool of the texts in a folder, or open the one that is there."""
    if is_pool(folder):
        pool = open_pool(folder)
        say(f"{folder} holds a pool of {pool.sentences} sentences, which is used as it is")
        return pool
    for text in texts:
        fingerprint(text)  # refuses a wrong name before the others are read
    start = time.monotonic()
    pool = _write_pool(_sentences(texts, reading), folder, size, reading)
    say(f"{_summary(pool)}, written to {folder} in {time.monotonic() - start:.0f} s")
    return pool


def _sentences(texts: Sequence[str], reading: ReadOptions) -> Iterator[Sentence]:
    for text in texts:
        yield from read_source(text, reading.format, reading.options)


def _copy(texts: Sequence[str], folder: Path, reading: ReadOptions) -> list[Unit]:
    """Copy text that is read from its start only into the job's folder; much of it as a pool."""
    if not is_pool(folder / "pool"):
        few, many = held(_sentences(texts, reading))
        if few:
            units, left_out = write_blocks(few, folder / "blocks")
            _say_counts(reading)
            total = sum(map(len, units))
            say(f"{', '.join(texts)}: {total} sentences; left out: {_describe_left_out(left_out)}")
            return units
        say(
            f"{', '.join(texts)}: too large to be held and cannot be read from the middle, "
            "so a pool is built first; --pool FOLDER keeps it"
        )
        say(_summary(_write_pool(many, folder / "pool", SHARD, reading)))
    return list(open_pool(folder / "pool").units())


def _write_pool(
    sentences: Iterable[Sentence], folder: Path, size: int, reading: ReadOptions
) -> PoolOnDisk:
    with ExitStack() as stack:
        meters: dict[str, Callable[[int], None]] = {}

        def progress(phase: str, n: int) -> None:
            if phase not in meters:
                stack.pop_all().close()  # a terminal shows one at a time
                meters[phase] = stack.enter_context(throughput(phase))
            meters[phase](n)

        pool = build_pool(sentences, folder, size, reading.ids, progress)
    _say_counts(reading)
    return pool


def _say_counts(reading: ReadOptions) -> None:
    for what, n in sorted(reading.options.counts.items()):
        say(f"{n} {what}")


def _summary(pool: PoolOnDisk) -> str:
    sentences, shards = count(pool.sentences, "sentence"), count(len(pool.shards), "shard")
    left_out = _describe_left_out(pool.left_out)
    return f"{sentences} in {shards}, {pool.bytes / 2**20:.1f} MiB; left out: {left_out}"


def _describe_left_out(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {why}" for why, n in left_out.items()) or "none"
