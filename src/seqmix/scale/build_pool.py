"""Build a pool from a stream of sentences in bounded memory.

Sentences go to 256 files by their digest; each file is sorted, its repeats are dropped, and it is
copied to the shards. So the order of the text does not matter. An interrupted build starts over.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqmix.data.files import locked
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError
from seqmix.scale.dedupe import Buckets, key_of
from seqmix.scale.pool import PoolOnDisk, Shard, describe, is_pool, worth_asking
from seqmix.scale.shards import (
    BLOCK,
    Batch,
    ShardWriter,
    arrow,
    as_data_error,
    batch_of,
    joined,
    sound,
    whole_blocks,
)

SHARD = 100_000  # sentences
IDS = ("given", "content")
HELD, _BYTES = 1 << 16, 1 << 26  # sentences, or their bytes, in memory before they are written
FILE_BYTES = 1 << 28  # bytes of a file that is sorted in memory
Progress = Callable[[str, int], None]  # the phase, and how many sentences it has done


def build_pool(
    sentences: Iterable[Sentence],
    out: Path,
    shard_size: int = SHARD,
    ids: str = "given",
    progress: Progress = lambda what, n: None,
) -> PoolOnDisk:
    """Write every sentence once, by its lowest id, without labels; skip empty ones and -DOCSTART-.

    Ids must differ; with `ids="content"` they are digests of the tokens.
    """
    if ids not in IDS:
        raise ConfigError(f"ids must be {' or '.join(IDS)}; got {ids!r}")
    if shard_size < 1:
        raise ConfigError(f"--shard-size is {shard_size}; a shard has at least one sentence")
    arrow()  # reports a missing pyarrow before anything is read
    with locked(out):
        _sweep(out)
        try:
            pool = _build(sentences, out, shard_size, ids, progress)
        except BaseException:
            _sweep(out)  # a build cannot be resumed, and what is left of it can be large
            raise
        describe(pool)
    return pool


def _build(
    sentences: Iterable[Sentence], out: Path, shard_size: int, ids: str, progress: Progress
) -> PoolOnDisk:
    """Write the shards and return the pool."""
    work, counts = out / "building", Counter[str]()
    (work / "read").mkdir(parents=True)
    read = _with_progress(_read(sentences, ids, counts), partial(progress, "reading"))
    _deal(read, work / "read", counts)
    if not any((work / "read").iterdir()):
        raise DataError(none_left(counts))
    ordered = whole_blocks(in_order(work / "read", counts))
    blocks = _with_progress(ordered, partial(progress, "writing"))
    if ids == "content":
        pool = _write(blocks, out, shard_size, counts)
    else:
        names = Buckets(work / "names")
        pool = _write(_named(blocks, names), out, shard_size, counts)
        _check_names(names, pool)
    shutil.rmtree(work)
    return pool


def none_left(counts: Mapping[str, int]) -> str:
    """Return the error message for a source without sentences that can be labeled."""
    left_out = ", ".join(f"{n} {why}" for why, n in counts.items() if n)
    return "expected sentences for a pool, but there are none" + (
        f" ({left_out} left out)" if left_out else ""
    )


def same_id(*sentences: Sentence) -> DataError:
    """Return the error for two sentences that share an id, as their answers would be confused."""
    first, second = sorted(sentences, key=lambda sentence: sentence.tokens)
    return DataError(
        f"two sentences have the id {first.id!r}; rename a file, or use digests of the tokens "
        "as ids: seqmix rank --pool FOLDER --read ids=content",
        text=f"{' '.join(first.tokens)} / {' '.join(second.tokens)}",
    )


def _with_progress(blocks: Iterable[Batch], report: Callable[[int], None]) -> Iterator[Batch]:
    """Yield the same blocks and report the number of sentences so far."""
    seen = 0
    for block in blocks:
        yield block
        seen += block.num_rows
        report(seen)


def _sweep(out: Path) -> None:
    """Remove what an unfinished build left; refuse a finished pool and files that are not ours."""
    if is_pool(out):
        raise DataError(
            "the folder holds a pool already; name another folder, or remove it first", out
        )
    strange = next(
        (
            p
            for p in out.iterdir()
            if p.name not in ("lock", "building") and not re.fullmatch(r"\d+\.arrow", p.name)
        ),
        None,
    )
    if strange is not None:
        raise DataError(
            "the folder for the pool holds other files; name a new or empty one",
            out,
            None,
            strange.name,
        )
    shutil.rmtree(out / "building", ignore_errors=True)
    for path in out.glob("*.arrow"):
        path.unlink()


def _read(sentences: Iterable[Sentence], ids: str, counts: Counter[str]) -> Iterator[Batch]:
    """Yield blocks of sentences that can be labeled."""
    source = iter(sentences)
    while chunk := list(islice(source, BLOCK)):
        kept = [sentence for sentence in chunk if worth_asking(sentence)]
        counts["empty"] += sum(not sentence.tokens for sentence in chunk)
        counts["-DOCSTART-"] += sum(bool(sentence.tokens) for sentence in chunk) - len(kept)
        keys = [sentence_key(sentence) for sentence in kept]
        if kept:
            yield batch_of(
                [s.id for s in kept] if ids == "given" else [key.hex() for key in keys],
                [s.tokens for s in kept],
                keys,
            )


def sentence_key(sentence: Sentence) -> bytes:
    """Return the digest of the tokens after checking that the sentence can be written."""
    try:
        sentence.id.encode()
        return key_of(sentence.tokens)
    except UnicodeEncodeError as error:
        text = " ".join(sentence.tokens)
        raise DataError(
            f"sentence {sentence.id!r}: expected whole characters; got half of a surrogate pair",
            text=text,
        ) from error


def _deal(blocks: Iterable[Batch], folder: Path, counts: Counter[str], byte: int = 0) -> None:
    """Append sentences to 256 files by a byte of their digest, dropping repeats that are close."""
    pa = arrow()
    for stretch in _stretches(blocks):
        kept = _each_once(stretch)
        counts["repeated"] += stretch.num_rows - len(kept)
        bucket = (_keys(stretch)[0][kept] >> np.uint64(56 - 8 * byte)) & np.uint64(255)
        order = np.argsort(bucket, kind="stable")
        dealt, edges = (
            stretch.take(pa.array(kept[order])),
            np.searchsorted(bucket[order], np.arange(257)).tolist(),
        )
        for number, (first, last) in enumerate(pairwise(edges)):
            if first < last:
                with (
                    (folder / f"{number:02x}").open("ab") as file,
                    pa.ipc.new_stream(file, stretch.schema) as writer,
                ):
                    writer.write_batch(dealt.slice(first, last - first))


def _dealt(path: Path) -> Iterator[Batch]:
    """Yield the batches of a file, which has one stream per write."""
    pa = arrow()
    with as_data_error(path), pa.OSFile(str(path)) as file:
        while file.tell() < file.size():
            for batch in pa.ipc.open_stream(file):
                yield sound(batch)


def _stretches(blocks: Iterable[Batch]) -> Iterator[Batch]:
    """Join blocks, so that each write to a file is worth its cost."""
    held: list[Batch] = []
    for block in blocks:
        held.append(block)
        if (
            sum(part.num_rows for part in held) >= HELD
            or sum(part.nbytes for part in held) >= _BYTES
        ):
            yield joined(held)
            held = []
    if held:
        yield joined(held)


def in_order(folder: Path, counts: Counter[str], byte: int = 0) -> Iterator[Batch]:
    """Yield every sentence once in the order of digests, and remove the files.

    A file that is too large to be sorted in memory is split by the next byte.
    """
    for file in sorted(folder.iterdir()):
        if file.stat().st_size > FILE_BYTES and byte < 7:
            part = file.with_suffix(".part")
            part.mkdir()
            _deal(_dealt(file), part, counts, byte + 1)
            file.unlink()
            yield from in_order(part, counts, byte + 1)
            part.rmdir()
        else:
            whole = joined(list(_dealt(file)))
            kept = _each_once(whole)
            counts["repeated"] += whole.num_rows - len(kept)
            yield whole.take(arrow().array(kept))
            file.unlink()


def _each_once(batch: Batch) -> NDArray[np.int64]:
    """Return one row per digest, in their order: the one with the lowest id."""
    high, low = _keys(batch)
    order = np.lexsort((low, high))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
    starts = np.flatnonzero(new)
    kept, ids = order[starts], batch.column("id")
    sizes = np.diff(np.append(starts, len(order)))
    for at in np.flatnonzero(sizes > 1).tolist():
        kept[at] = min(
            order[starts[at] : starts[at] + sizes[at]].tolist(), key=lambda row: ids[row].as_py()
        )
    return kept


def _keys(batch: Batch) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the digests as two numbers each, which sort as their bytes do."""
    column = batch.column("digest")
    pairs = (
        np.frombuffer(column.buffers()[1], dtype=">u8")
        .reshape(-1, 2)[column.offset : column.offset + len(column)]
        .astype(np.uint64)
    )
    return pairs[:, 0], pairs[:, 1]


def _write(blocks: Iterable[Batch], out: Path, size: int, counts: Counter[str]) -> PoolOnDisk:
    """Write the shards in whole blocks."""
    sentences = tokens = longest = 0
    digest = blake2b(digest_size=16)
    with ShardWriter(out, size) as writer:
        for block in blocks:
            writer.write(block)
            digest.update("\n".join(block.column("id").to_pylist()).encode())
            digest.update(b"".join(block.column("digest").to_pylist()))
            lengths = block.column("tokens").value_lengths().to_numpy()
            sentences, tokens, longest = (
                sentences + block.num_rows,
                tokens + int(lengths.sum()),
                max(longest, int(lengths.max())),
            )
    shards = tuple(Shard(name, rows, (out / name).stat().st_size) for name, rows in writer.written)
    left_out = {why: n for why, n in sorted(counts.items()) if n}
    return PoolOnDisk(out, sentences, tokens, longest, digest.hexdigest(), shards, left_out)


def _named(blocks: Iterable[Batch], names: Buckets) -> Iterator[Batch]:
    """Yield the same blocks and collect their ids."""
    for block in blocks:
        yield block
        for id in block.column("id").to_pylist():
            names.add(key_of([id]))


def _check_names(names: Buckets, pool: PoolOnDisk) -> None:
    """Refuse two sentences with the same id."""
    for places, before in names.repeats():
        raise same_id(*(next(islice(pool, int(at[0]), None)) for at in (before, places)))
