"""Build a pool out of a stream of sentences, in memory that does not grow with it.

What is read is dealt out to 256 files by its digest as it comes; then each file is sorted, rid of repeats and copied into the shards. So
a pool stands in the order of its digests, whatever order it was read in, and its blocks and their scores with it. A build that fails
or is killed is started over: what it left is swept away, and pool.json comes last.
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

from seqmix.data.locks import locked
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
_HELD, _BYTES = (
    1 << 16,
    1 << 26,
)  # sentences, or bytes of them, in memory before they go to their files
_FILE = 1 << 28  # bytes of a file that is sorted in memory
Progress = Callable[[str, int], None]  # what is being done, and to how many sentences it was done


def build_pool(
    sentences: Iterable[Sentence],
    out: Path,
    shard_size: int = SHARD,
    ids: str = "given",
    progress: Progress = lambda what, n: None,
) -> PoolOnDisk:
    """Every sentence once, by the lowest of its ids; empty ones and -DOCSTART- left out, labels left behind.

    Sentences keep their ids, which must then differ, or (`ids="content"`) are called by the digest of their tokens.
    """
    if ids not in IDS:
        raise ConfigError(f"ids must be {' or '.join(IDS)}; got {ids!r}")
    if shard_size < 1:
        raise ConfigError(f"--shard-size is {shard_size}; a shard has at least one sentence")
    arrow()  # if it is missing, that is said before anything is read
    with locked(out):
        _sweep(out)
        try:
            pool = _built(sentences, out, shard_size, ids, progress)
        except BaseException:
            _sweep(
                out
            )  # a build begins at the beginning, so nothing of it is of use, and it can be large
            raise
        describe(pool)
    return pool


def _built(
    sentences: Iterable[Sentence], out: Path, shard_size: int, ids: str, progress: Progress
) -> PoolOnDisk:
    """The shards, all of them, and what pool.json is to say."""
    work, counts = out / "building", Counter[str]()
    (work / "read").mkdir(parents=True)
    _deal(_told(_read(sentences, ids, counts), partial(progress, "reading")), work / "read", counts)
    if not any((work / "read").iterdir()):
        raise DataError(none_left(counts))
    blocks = _told(whole_blocks(_in_order(work / "read", counts)), partial(progress, "writing"))
    if ids == "content":
        pool = _copied(blocks, out, shard_size, counts)
    else:
        names = Buckets(work / "names")
        pool = _copied(_named(blocks, names), out, shard_size, counts)
        _check_names(names, pool)
    shutil.rmtree(work)
    return pool


def none_left(counts: Mapping[str, int]) -> str:
    """What to say when nothing that was read is worth asking."""
    left_out = ", ".join(f"{n} {why}" for why, n in counts.items() if n)
    return "expected sentences for a pool, but there are none" + (
        f" ({left_out} left out)" if left_out else ""
    )


def same_id(one: Sentence, other: Sentence) -> DataError:
    """Two sentences that differ must not share an id, or an answer to one would be taken for the other's."""
    first, second = sorted((one, other), key=lambda sentence: sentence.tokens)
    return DataError(
        f"two sentences have the id {one.id!r}; rename a file, or use digests of the tokens as ids: seqmix rank --pool FOLDER --read ids=content",
        text=f"{' '.join(first.tokens)} / {' '.join(second.tokens)}",
    )


def _told(blocks: Iterable[Batch], tell: Callable[[int], None]) -> Iterator[Batch]:
    """The same blocks; how many sentences have gone by is told."""
    seen = 0
    for block in blocks:
        yield block
        seen += block.num_rows
        tell(seen)


def _sweep(out: Path) -> None:
    """Room for a build: what an unfinished one left goes; a finished pool, or anything that is not ours, is not touched."""
    if is_pool(out):
        raise DataError("a pool is there already; give another --out, or remove it first", out)
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
    """Blocks of what is worth asking."""
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
    """The digest of a sentence's tokens, once it is certain that it can be written."""
    try:
        sentence.id.encode()
        return key_of(sentence.tokens)
    except UnicodeEncodeError as error:
        text = " ".join(sentence.tokens)
        raise DataError(
            f"sentence {sentence.id!r}: expected whole characters, found half of a surrogate pair",
            text=text,
        ) from error


def _deal(blocks: Iterable[Batch], folder: Path, counts: Counter[str], byte: int = 0) -> None:
    """Sentences to 256 files by this byte of their digest; repeats that come close together are left out already."""
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
    """What went to one of the files: a stream for each time that something did."""
    pa = arrow()
    with as_data_error(path), pa.OSFile(str(path)) as file:
        while file.tell() < file.size():
            for batch in pa.ipc.open_stream(file):
                yield sound(batch)


def _stretches(blocks: Iterable[Batch]) -> Iterator[Batch]:
    """Blocks put together, so that what goes to one file at a time is worth a write."""
    held: list[Batch] = []
    for block in blocks:
        held.append(block)
        if (
            sum(part.num_rows for part in held) >= _HELD
            or sum(part.nbytes for part in held) >= _BYTES
        ):
            yield joined(held)
            held = []
    if held:
        yield joined(held)


def _in_order(folder: Path, counts: Counter[str], byte: int = 0) -> Iterator[Batch]:
    """Every sentence once, in the order of digests. A large file is dealt out again; each goes when it is used up."""
    for file in sorted(folder.iterdir()):
        if file.stat().st_size > _FILE and byte < 7:
            part = file.with_suffix(".part")
            part.mkdir()
            _deal(_dealt(file), part, counts, byte + 1)
            file.unlink()
            yield from _in_order(part, counts, byte + 1)
            part.rmdir()
        else:
            whole = joined(list(_dealt(file)))
            kept = _each_once(whole)
            counts["repeated"] += whole.num_rows - len(kept)
            yield whole.take(arrow().array(kept))
            file.unlink()


def _each_once(batch: Batch) -> NDArray[np.int64]:
    """The rows in the order of their digests, one of each: that with the lowest id, whichever came first."""
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
    """The digests as two numbers each, that order as their bytes do."""
    column = batch.column("digest")
    pairs = (
        np.frombuffer(column.buffers()[1], dtype=">u8")
        .reshape(-1, 2)[column.offset : column.offset + len(column)]
        .astype(np.uint64)
    )
    return pairs[:, 0], pairs[:, 1]


def _copied(blocks: Iterable[Batch], out: Path, size: int, counts: Counter[str]) -> PoolOnDisk:
    """The shards, in whole blocks."""
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
    """The same blocks; their ids are noted down."""
    for block in blocks:
        yield block
        for id in block.column("id").to_pylist():
            names.add(key_of([id]))


def _check_names(names: Buckets, pool: PoolOnDisk) -> None:
    """Refuse two sentences of one id."""
    for places, before in names.repeats():
        one, other = (next(islice(pool, at, None)) for at in (int(before[0]), int(places[0])))
        raise same_id(one, other)
