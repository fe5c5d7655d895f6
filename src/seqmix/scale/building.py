"""Build a pool out of a stream of sentences, in memory that does not grow with it.

What is read is dealt out to 256 files by its digest as it comes; then each file is sorted, rid of repeats and copied into the shards. So
a pool stands in the order of its digests, whatever order it was read in, and its blocks and their scores with it. A build that fails
or is killed is started over: what it left is swept away, and pool.json comes last.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError
from seqmix.loop.run import locked
from seqmix.scale.dedupe import Buckets, key_of
from seqmix.scale.pool import PoolOnDisk, Shard, describe, is_pool, worth_asking
from seqmix.scale.shards import BLOCK, Batch, ShardWriter, arrow, as_data_error, batch_of, sound, whole_blocks

SHARD = 100_000  # sentences
IDS = ("given", "content")
_HELD, _BYTES = 32, 1 << 26  # blocks, or bytes of them, in memory before they go to their files
Progress = Callable[[str, int], None]  # what is being done, and to how many sentences it was done


def build_pool(
    sentences: Iterable[Sentence], out: Path, shard_size: int = SHARD, ids: str = "given", progress: Progress = lambda what, n: None
) -> PoolOnDisk:
    """Every sentence once, by the lowest of its ids; empty ones and -DOCSTART- left out, labels left behind.

    Sentences keep their ids, which must then differ, or (`ids="content"`) are called by the digest of their tokens.
    """
    if ids not in IDS:
        raise ConfigError(f"--ids is {ids!r}; it is {' or '.join(IDS)}")
    if shard_size < 1:
        raise ConfigError(f"--shard-size is {shard_size}; a shard has at least one sentence")
    arrow()  # if it is missing, that is said before anything is read
    with locked(out):
        _sweep(out)
        try:
            pool = _built(sentences, out, shard_size, ids, progress)
        except BaseException:
            _sweep(out)  # a build begins at the beginning, so nothing of it is of use, and it can be large
            raise
        describe(pool)
    return pool


def _built(sentences: Iterable[Sentence], out: Path, shard_size: int, ids: str, progress: Progress) -> PoolOnDisk:
    """The shards, all of them, and what pool.json is to say."""
    work, counts = out / "building", Counter[str]()
    (work / "read").mkdir(parents=True)
    if not _deal(_read(sentences, ids, counts), work / "read", progress):
        left_out = ", ".join(f"{n} {why}" for why, n in counts.items() if n)
        raise DataError("expected sentences for a pool, but there are none" + (f" ({left_out} left out)" if left_out else ""))
    names = Buckets(work / "names")
    pool = _copied(_in_order(work / "read", counts), out, shard_size, names, counts, progress)
    if ids == "given":
        _check_names(names, pool)
    shutil.rmtree(work)
    return pool


def _sweep(out: Path) -> None:
    """Room for a build: what an unfinished one left goes; a finished pool, or anything that is not ours, is not touched."""
    if is_pool(out):
        raise DataError("a pool is there already; give another --out, or remove it first", out)
    strange = next((p for p in out.iterdir() if p.name not in ("lock", "building") and not re.fullmatch(r"\d+\.arrow", p.name)), None)
    if strange is not None:
        raise DataError("the folder for the pool holds other files; name a new or empty one", out, None, strange.name)
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
        keys = [_key(sentence) for sentence in kept]
        if kept:
            yield batch_of([s.id for s in kept] if ids == "given" else [key.hex() for key in keys], [s.tokens for s in kept], keys)


def _key(sentence: Sentence) -> bytes:
    try:
        sentence.id.encode()
        return key_of(sentence.tokens)
    except UnicodeEncodeError as error:
        text = " ".join(sentence.tokens)
        raise DataError(f"sentence {sentence.id!r}: expected whole characters, found half of a surrogate pair", text=text) from error


def _deal(blocks: Iterable[Batch], folder: Path, progress: Progress) -> int:
    """Sentences to 256 files by the first byte of their digest; how many there were."""
    pa, seen = arrow(), 0
    for stretch in _stretches(blocks):
        bucket = _keys(stretch)[0] >> np.uint64(56)
        order = np.argsort(bucket, kind="stable")
        dealt, edges = stretch.take(pa.array(order)), np.searchsorted(bucket[order], np.arange(257)).tolist()
        for number, (first, last) in enumerate(pairwise(edges)):
            if first < last:
                with (folder / f"{number:02x}").open("ab") as file, pa.ipc.new_stream(file, stretch.schema) as writer:
                    writer.write_batch(dealt.slice(first, last - first))
        seen += stretch.num_rows
        progress("reading", seen)
    return seen


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
        if len(held) == _HELD or sum(part.nbytes for part in held) >= _BYTES:
            yield arrow().concat_batches(held)
            held = []
    if held:
        yield arrow().concat_batches(held)


def _in_order(folder: Path, counts: Counter[str]) -> Iterator[Batch]:
    """Every sentence once, file after file in the order of digests; a file is removed when it is used up."""
    pa = arrow()
    for file in sorted(folder.iterdir()):
        whole = pa.concat_batches(list(_dealt(file)))
        kept = _each_once(whole)
        counts["repeated"] += whole.num_rows - len(kept)
        yield whole.take(pa.array(kept))
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
        kept[at] = min(order[starts[at] : starts[at] + sizes[at]].tolist(), key=lambda row: ids[row].as_py())
    return kept


def _keys(batch: Batch) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The digests as two numbers each, that order as their bytes do."""
    column = batch.column("digest")
    pairs = np.frombuffer(column.buffers()[1], dtype=">u8").reshape(-1, 2)[column.offset : column.offset + len(column)].astype(np.uint64)
    return pairs[:, 0], pairs[:, 1]


def _copied(source: Iterator[Batch], out: Path, size: int, names: Buckets, counts: Counter[str], progress: Progress) -> PoolOnDisk:
    """The shards, in whole blocks; ids are noted down on the way."""
    sentences = tokens = longest = 0
    digest = blake2b(digest_size=16)
    with ShardWriter(out, size) as writer:
        for block in whole_blocks(source):
            writer.write(block)
            ids = block.column("id").to_pylist()
            for id in ids:
                names.add(key_of([id]))
            digest.update("\n".join(ids).encode())
            digest.update(b"".join(block.column("digest").to_pylist()))
            lengths = block.column("tokens").value_lengths().to_numpy()
            sentences, tokens, longest = sentences + len(ids), tokens + int(lengths.sum()), max(longest, int(lengths.max()))
            progress("writing", sentences)
    shards = tuple(Shard(name, rows, (out / name).stat().st_size) for name, rows in writer.written)
    left_out = {why: n for why, n in sorted(counts.items()) if n}
    return PoolOnDisk(out, sentences, tokens, longest, digest.hexdigest(), shards, left_out)


def _check_names(names: Buckets, pool: PoolOnDisk) -> None:
    """Two sentences that differ must not share an id, or an answer to one would be taken for the other's."""
    for places, before in names.repeats():
        one, other = sorted((next(islice(pool, at, None)) for at in (int(before[0]), int(places[0]))), key=lambda sentence: sentence.tokens)
        raise DataError(
            f"two sentences have the id {one.id!r}; rename a file, or call sentences by their content: seqmix pool build --ids content",
            text=f"{' '.join(one.tokens)} / {' '.join(other.tokens)}",
        )
