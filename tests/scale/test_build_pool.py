"""A pool on disk: every sentence once, the same blocks whatever the shards, nothing half done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqmix.data import formats
from seqmix.data.files import locked
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError, RunError
from seqmix.scale import build_pool as building
from seqmix.scale import dedupe
from seqmix.scale.build_pool import build_pool
from seqmix.scale.dedupe import Buckets, key_of
from seqmix.scale.pool import open_pool
from seqmix.scale.shards import BLOCK, shard_block
from seqmix.scale.sources import blocks, read_source, units_in_place
from tests.support.pools import many

TOKENS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=4)


def kept_once(sentences: list[Sentence]) -> list[tuple[str, tuple[str, ...]]]:
    """What should be left, found the way that needs all of it in memory."""
    found: dict[tuple[str, ...], str] = {}
    for sentence in sentences:
        if sentence.tokens and sentence.tokens[0] != "-DOCSTART-":
            found[sentence.tokens] = min(sentence.id, found.get(sentence.tokens, sentence.id))
    return [(id, tokens) for tokens, id in sorted(found.items(), key=lambda one: key_of(one[0]))]


@settings(max_examples=30)
@given(
    texts=st.lists(
        st.sampled_from(["", "a", "b c", "-DOCSTART-", "a b", "ab", "b  c"]), max_size=40
    ).map(lambda some: ["x y", *some])
)
def test_a_pool_holds_every_sentence_once_in_the_order_of_its_digest(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    sentences = [Sentence(f"s{i}", tuple(text.split())) for i, text in enumerate(texts)]

    pool = build_pool(sentences, tmp_path_factory.mktemp("pool") / "out")

    assert [(s.id, s.tokens) for s in pool] == kept_once(sentences)
    assert pool == open_pool(pool.folder)
    assert pool.sentences + sum(pool.left_out.values()) == len(texts)


def test_repeats_are_found_anywhere_and_blocks_do_not_hang_on_the_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dedupe, "HELD", 700)  # what goes to files goes there several times
    monkeypatch.setattr(building, "HELD", 1)
    monkeypatch.setattr(building, "FILE_BYTES", 3000)  # files are dealt out again
    sentences = [
        *many(5000),
        *(Sentence(f"again{s.id}", s.tokens) for s in many(2500)),
        *many(1000, seed=1),
    ]
    sentences = [Sentence(f"{i}", s.tokens) for i, s in enumerate(sentences)]

    small, large = (
        build_pool(sentences, tmp_path / "small", shard_size=1),
        build_pool(sentences, tmp_path / "large"),
    )

    assert (
        [(s.id, s.tokens) for s in small]
        == [(s.id, s.tokens) for s in large]
        == kept_once(sentences)
    )
    assert (
        small.left_out == {"repeated": len(sentences) - len(kept_once(sentences))}
        and small.left_out["repeated"] >= 2500
    )
    assert [shard.sentences for shard in small.shards] == [
        BLOCK,
        BLOCK,
        small.sentences - 2 * BLOCK,
    ] and len(large.shards) == 1
    assert [shard_block(u) for u in small.units()] == [shard_block(u) for u in large.units()]
    assert small.digest == large.digest != build_pool(many(100), tmp_path / "other").digest


def test_the_order_in_which_sentences_are_read_leaves_no_trace(tmp_path: Path) -> None:
    sentences = [Sentence(f"{i}", s.tokens) for i, s in enumerate([*many(3000), *many(500)])]
    shuffled = [sentences[i] for i in np.random.default_rng(0).permutation(len(sentences))]

    one, other = build_pool(sentences, tmp_path / "one"), build_pool(shuffled, tmp_path / "other")

    assert one.digest == other.digest and one.left_out == other.left_out == {"repeated": 500}
    assert [file.read_bytes() for file in sorted(one.folder.glob("*.arrow"))] == [
        file.read_bytes() for file in sorted(other.folder.glob("*.arrow"))
    ]


def test_any_number_of_copies_takes_no_more_room_than_a_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(read: Path, counts: object) -> object:
        sizes.append(sum(file.stat().st_size for file in read.iterdir()))
        return in_order(read, counts)

    sizes: list[int] = []
    in_order = building.in_order
    monkeypatch.setattr(building, "in_order", measured)
    copies = [Sentence(f"s{i}", ("one",) * 100) for i in range(5 * BLOCK)]

    pool = build_pool(copies, tmp_path / "pool")

    assert [s.id for s in pool] == ["s0"] and pool.left_out == {"repeated": 5 * BLOCK - 1}
    assert sizes[0] < 5000


def test_what_is_damaged_while_a_pool_is_built_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(read: Path, counts: object) -> object:
        file = max(read.iterdir(), key=lambda path: path.stat().st_size)
        file.write_bytes(file.read_bytes()[:-100])
        return in_order(read, counts)

    in_order = building.in_order
    monkeypatch.setattr(building, "in_order", cut)

    with pytest.raises(DataError, match="cannot read this shard"):
        build_pool(many(1000), tmp_path / "pool")
    assert [path.name for path in (tmp_path / "pool").iterdir()] == ["lock"]


@given(one=TOKENS, other=TOKENS)
def test_only_equal_tokens_have_equal_keys(one: list[str], other: list[str]) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)


@settings(max_examples=25)
@given(keys=st.lists(st.integers(0, 30), max_size=60), held=st.integers(1, 20))
def test_buckets_find_what_a_set_would(
    keys: list[int], held: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedupe, "HELD", held)
        buckets = Buckets(tmp_path_factory.mktemp("b") / "keys")
        for key in keys:
            buckets.add(key_of([str(key)]))

        found = {
            int(p): int(b)
            for places, before in buckets.repeats()
            for p, b in zip(places, before, strict=True)
        }

    last: dict[int, int] = {}
    expected = {}
    for place, key in enumerate(keys):
        if key in last:
            expected[place] = last[key]
        last[key] = place
    assert found == expected


def test_two_sentences_with_one_id_are_refused_unless_called_by_their_content(
    tmp_path: Path,
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.txt").write_text(f"Lena left .\nwritten in {folder}\n")
    texts = [str(tmp_path / folder / "train.txt") for folder in ("a", "b")]

    def sentences() -> Iterator[Sentence]:
        for text in texts:
            yield from read_source(text, None, formats.Options())

    with pytest.raises(DataError, match=r"'train:2'.*ids=content.*written in a / written in b"):
        build_pool(sentences(), tmp_path / "pool")
    pool = build_pool(sentences(), tmp_path / "pool", ids="content")

    assert pool.left_out == {"repeated": 1}
    assert [s.id for s in pool] == [key_of(s.tokens).hex() for s in pool]


def test_a_build_that_fails_leaves_nothing_and_what_a_killed_one_left_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "HELD", 1)
    began: list[str] = []

    def broken() -> Iterator[Sentence]:
        yield from many(3 * BLOCK)
        began.extend(path.name for path in (tmp_path / "pool" / "building" / "read").iterdir())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_pool(broken(), tmp_path / "pool", shard_size=BLOCK)
    assert len(began) >= 2 and [path.name for path in (tmp_path / "pool").iterdir()] == ["lock"]
    (tmp_path / "pool" / "building" / "read").mkdir(parents=True)
    (tmp_path / "pool" / "00000.arrow").write_bytes(b"half of")

    pool = build_pool(many(10), tmp_path / "pool")

    assert pool.sentences == 10 and not (tmp_path / "pool" / "building").exists()
    with pytest.raises(DataError, match="the folder holds a pool already"):
        build_pool(many(10), tmp_path / "pool")
    assert open_pool(tmp_path / "pool") == pool


def test_a_pool_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected sentences for a pool, but there are none$"):
        build_pool([], tmp_path / "pool")
    with pytest.raises(DataError, match=r"there are none \(2 empty, 1 -DOCSTART- left out\)"):
        build_pool(
            [Sentence("a", ()), Sentence("b", ()), Sentence("c", ("-DOCSTART-",))],
            tmp_path / "pool",
        )
    assert [path.name for path in (tmp_path / "pool").iterdir()] == ["lock"]


def test_a_folder_with_other_things_or_another_builder_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "data-00000.arrow").write_bytes(b"somebody's data set")
    with pytest.raises(DataError, match=r"holds other files.*data-00000"):
        build_pool(many(10), tmp_path / "mine")
    with locked(tmp_path / "pool"), pytest.raises(RunError, match="another process is working"):
        build_pool(many(10), tmp_path / "pool")
    with pytest.raises(ConfigError, match="got 'mine'"):
        build_pool(many(10), tmp_path / "pool", ids="mine")


def test_a_pool_that_lost_a_shard_or_is_of_another_version_says_so(tmp_path: Path) -> None:
    pool = build_pool(many(BLOCK + 1), tmp_path / "pool", shard_size=BLOCK)
    about = json.loads((pool.folder / "pool.json").read_text())

    (pool.folder / "pool.json").write_text(json.dumps({**about, "format_version": 9}))
    with pytest.raises(DataError, match=r"format 1.*'seqmix pool 9'"):
        open_pool(pool.folder)
    (pool.folder / "pool.json").write_text("{")
    with pytest.raises(DataError, match=r"expected a readable pool\.json"):
        open_pool(pool.folder)
    (pool.folder / "pool.json").write_text(json.dumps(about))
    (pool.folder / "00001.arrow").write_bytes(b"")
    with pytest.raises(
        DataError, match=r"00001.arrow: expected a shard of \d+ bytes, but it has 0"
    ):
        open_pool(pool.folder)
    (pool.folder / "00001.arrow").write_bytes(b"x" * pool.shards[1].bytes)
    with pytest.raises(DataError, match=r"00001.arrow: cannot read this shard"):
        list(pool)
    (pool.folder / "00001.arrow").unlink()
    with pytest.raises(DataError, match="but it is not there"):
        open_pool(pool.folder)


def test_half_a_character_is_refused_with_the_sentence_it_stands_in(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"sentence 'bad'.*surrogate"):
        build_pool([Sentence("bad", ("a\ud83d",))], tmp_path / "pool")


def test_parquet_is_read_where_it_lies_in_blocks_from_the_start_of_each_row_group(
    tmp_path: Path,
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    found = [*many(3 * BLOCK + 5)]
    tokens = [list(s.tokens) for s in found]
    tokens[1], tokens[2] = [], ["-DOCSTART-"]
    (tmp_path / "shards").mkdir()
    parquet.write_table(
        pa.table({"tokens": tokens}),
        tmp_path / "shards" / "a.parquet",
        row_group_size=2 * BLOCK + 3,
    )
    parquet.write_table(
        pa.table({"id": [7, 8], "text": ["Lena left Oslo.", None]}),
        tmp_path / "shards" / "b.parquet",
    )
    (tmp_path / "shards" / "_SUCCESS").touch()

    units = units_in_place(tmp_path / "shards")
    assert units is not None
    cut = [[(s.id, s.tokens) for s in block] for unit in units for block in blocks(unit)]

    assert [len(block) for block in cut] == [BLOCK - 2, BLOCK, 3, BLOCK, 2, 1]
    assert cut[0][0] == ("a:1", found[0].tokens) and cut[0][1] == ("a:4", found[3].tokens)
    assert cut[4][-1] == (f"a:{len(found)}", found[-1].tokens) and cut[-1] == [
        ("7", ("Lena", "left", "Oslo", "."))
    ]
    built = build_pool(
        read_source(str(tmp_path / "shards"), None, formats.Options()), tmp_path / "pool"
    )
    assert built.left_out == {"-DOCSTART-": 1, "empty": 2} and built.sentences == len(found) - 1


def test_a_long_row_group_is_several_units_with_the_blocks_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(
        pa.table({"tokens": [list(s.tokens) for s in many(5 * BLOCK)]}), tmp_path / "a.parquet"
    )
    whole = units_in_place(tmp_path / "a.parquet")
    monkeypatch.setattr("seqmix.scale.parquet.UNIT_ROWS", 2 * BLOCK)

    parts = units_in_place(tmp_path / "a.parquet")

    assert whole is not None and parts is not None and (len(whole), len(parts)) == (1, 3)
    assert [b for unit in whole for b in blocks(unit)] == [
        b for unit in parts for b in blocks(unit)
    ]
    parquet.write_table(pa.table({"words": ["a"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match='expected a column "tokens"'):
        [b for unit in units_in_place(tmp_path / "b.parquet") or [] for b in blocks(unit)]
    parquet.write_table(pa.table({"tokens": [[1, 2]]}), tmp_path / "c.parquet")
    with pytest.raises(DataError, match="lists of strings"):
        [b for unit in units_in_place(tmp_path / "c.parquet") or [] for b in blocks(unit)]


def test_folders_of_files_samples_and_pools_are_sources_too(tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "1.jsonl").write_text(
        '{"tokens": ["a", "b"]}\n{"id": "x", "tokens": ["c"]}\n'
    )
    (tmp_path / "shards" / "2.conll").write_text("d\tO\n\ne\tB-PER\n")
    build_pool([Sentence("f", ("f",))], tmp_path / "pool")

    def of(name: object) -> list[tuple[str, tuple[str, ...]]]:
        return [(s.id, s.tokens) for s in read_source(str(name), None, formats.Options())]

    assert of(tmp_path / "shards") == [
        ("1:1", ("a", "b")),
        ("x", ("c",)),
        ("2:1", ("d",)),
        ("2:2", ("e",)),
    ]
    assert of(tmp_path / "pool") == [("f", ("f",))] and len(of("gazette:dev")) == 100
    assert units_in_place(tmp_path / "shards") is None
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="expected a folder with files in it"):
        of(tmp_path / "empty")


def test_parquet_with_numbers_for_tokens_says_what_it_expects(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    pq.write_table(pa.table({"tokens": [1, 2]}), tmp_path / "a.parquet")

    with pytest.raises(DataError, match='expected "tokens" to be lists of strings'):
        list(read_source(str(tmp_path / "a.parquet"), None, formats.Options()))
