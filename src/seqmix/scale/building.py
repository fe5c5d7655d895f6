"""Build a pool out of a stream of sentences, in memory that does not grow with it.

What is read goes to the disk as it comes, and its keys beside; then repeats are found bucket by bucket; then what is no repeat is
copied into the pool's shards. A build that fails or is killed is started over: what it left is swept away, and pool.json comes last.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError
from seqmix.loop.run import locked
from seqmix.scale.dedupe import Buckets, Marks, key_of
from seqmix.scale.pool import PoolOnDisk, Shard, describe, is_pool, worth_asking
from seqmix.scale.shards import BLOCK, Batch, ShardWriter, arrow, batch_of, batches_in, sentences_of, whole_blocks

SHARD = 100_000  # sentences
IDS = ("given", "content")
Progress = Callable[[str, int], None]  # what is being done, and to how many sentences it was done


def build_pool(
    sentences: Iterable[Sentence], out: Path, shard_size: int = SHARD, ids: str = "given", progress: Progress = lambda what, n: None
) -> PoolOnDisk:
    """Every sentence once, the first of its kind; empty ones and -DOCSTART- left out, labels left behind.

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
    work = out / "building"
    (work / "read").mkdir(parents=True)
    keys, names, counts = Buckets(work / "keys"), Buckets(work / "names"), Counter[str]()
    with ShardWriter(work / "read", shard_size) as writer:
        for block in _read(sentences, ids, counts):
            for key in block.column("digest").to_pylist():
                keys.add(key)
            for id in block.column("id").to_pylist() if ids == "given" else ():
                names.add(key_of([id]))
            writer.write(block)
            progress("reading", len(keys))
    if not len(keys):
        left_out = ", ".join(f"{n} {why}" for why, n in counts.items() if n)
        raise DataError("expected sentences for a pool, but there are none" + (f" ({left_out} left out)" if left_out else ""))
    repeated = Marks(len(keys))
    for places, _ in keys.repeats():
        repeated.mark(places)
    _check_names(names, repeated, work / "read")
    counts["repeated"] = repeated.count
    pool = _copied(work / "read", out, shard_size, repeated, counts, progress)
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


def _check_names(names: Buckets, repeated: Marks, folder: Path) -> None:
    """Two sentences that differ must not share an id, or an answer to one would be taken for the other's."""
    for places, before in names.repeats(gone=repeated):
        second, first = min(zip(places.tolist(), before.tolist(), strict=True))
        one, other = (next(islice(_stored(folder), at, None)) for at in (first, second))
        raise DataError(
            f"two sentences have the id {one.id!r}; rename a file, or call sentences by their content: seqmix pool build --ids content",
            text=f"{' '.join(one.tokens)} / {' '.join(other.tokens)}",
        )


def _stored(folder: Path) -> Iterator[Sentence]:
    for file in sorted(folder.iterdir()):
        for batch in batches_in(file):
            yield from sentences_of(batch)


def _copied(source: Path, out: Path, size: int, repeated: Marks, counts: Counter[str], progress: Progress) -> PoolOnDisk:
    """Everything but the repeats, in whole blocks; what was read is removed as it is used up."""
    tokens = longest = 0
    digest = blake2b(digest_size=16)
    with ShardWriter(out, size) as writer:
        for block in whole_blocks(_without(source, repeated, progress)):
            writer.write(block)
            digest.update("\n".join(block.column("id").to_pylist()).encode())
            digest.update(b"".join(block.column("digest").to_pylist()))
            lengths = block.column("tokens").value_lengths().to_numpy()
            tokens, longest = tokens + int(lengths.sum()), max(longest, int(lengths.max()))
    shards = tuple(Shard(name, rows, (out / name).stat().st_size) for name, rows in writer.written)
    left_out = {why: n for why, n in sorted(counts.items()) if n}
    return PoolOnDisk(out, sum(shard.sentences for shard in shards), tokens, longest, digest.hexdigest(), shards, left_out)


def _without(source: Path, repeated: Marks, progress: Progress) -> Iterator[Batch]:
    pa, place = arrow(), 0
    for file in sorted(source.iterdir()):
        for batch in batches_in(file):
            gone = repeated.at(np.arange(place, place + batch.num_rows))
            place += batch.num_rows
            yield batch.filter(pa.array(~gone)) if gone.any() else batch
            progress("writing", place)
        file.unlink()
