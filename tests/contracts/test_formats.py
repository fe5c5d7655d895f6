"""One suite for every format. A new format needs one entry in SAMPLES."""

from __future__ import annotations

import importlib
import pkgutil
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from seqmix.data import formats
from seqmix.data.formats import FORMATS, Options
from seqmix.data.sentence import Row, Sentence
from seqmix.errors import DataError, MissingExtraError, TagError

EXTRAS = {"docbin": "spacy", "hf": "datasets"}
APF = """<?xml version="1.0"?>
<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">
<source_file><document DOCID="d"><event ID="E1" TYPE="Conflict" SUBTYPE="Attack">
<event_mention ID="E1-1"><anchor>\
<charseq START="8" END="15">attacked</charseq></anchor></event_mention>
</event></document></source_file>
"""


@dataclass(frozen=True)
class Sample:
    """A name to write to, a file that breaks, and for formats that are only read one that works."""

    name: str
    broken: Mapping[
        str, str | bytes
    ]  # file name inside the folder, or "" for the file itself, to content
    line: int | None = None  # where it breaks
    good: Mapping[str, str | bytes] | None = None


SAMPLES = {
    "conll": Sample("a.conll", {"": "Lena B-PER\nleft\n"}, 2),
    "conllu": Sample("a.conllu", {"": "# sent_id = 1\n1\tLena\t_\n"}, 2),
    "jsonl-tokens": Sample("a.jsonl", {"": '{"tokens": ["a"]}\n{"tokens": [1]}\n'}, 2),
    "jsonl-spans": Sample(
        "a.jsonl",
        {"": '{"text": "a"}\n\n{"text": "a", "spans": [{"start": 0, "end": 9, "label": "X"}]}\n'},
        3,
    ),
    "doccano": Sample("a.jsonl", {"": '{"text": "a", "label": [[0, 1]]}\n'}, 1),
    "prodigy": Sample(
        "a.jsonl", {"": '{"text": "a", "answer": "accept", "spans": [{"start": 0}]}\n'}, 1
    ),
    "labelstudio": Sample("a.json", {"": '[\n{"data": {"text": "a"}},\n{"data": 1}\n]'}, 3),
    "argilla": Sample(
        "a.jsonl",
        {"": '{"fields": {"text": "a"}, "responses": {"q": [{"value": [{"start": 0}]}]}}\n'},
        1,
    ),
    "docbin": Sample("a.spacy", {"": b"no block"}),
    "hf": Sample("folder", {"state.json": "{}", "dataset_info.json": "{}"}),
    "brat": Sample("folder", {"a.txt": "Lena left\n", "a.ann": "R1\tx\nT1\tPER 0\n"}, 2),
    "ace05": Sample(
        "folder",
        {
            "d.sgm": "<DOC><TEXT>Rebels attacked.</TEXT></DOC>",
            "d.apf.xml": APF.replace("</event>", ""),
        },
        5,
        {"d.sgm": "<DOC>\n<TEXT>Rebels attacked.\n</TEXT></DOC>", "d.apf.xml": APF},
    ),
    "text": Sample(
        "a.txt", {"": b"good\n\xff\xfe\n"}, 2, {"": "Lena left Oslo.\n\nIt was late.\n"}
    ),
}


def put(path: Path, content: Mapping[str, str | bytes]) -> Path:
    """The files of a sample on the disk."""
    for name, data in content.items():
        file = path / name if name else path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def raw(id: str, text: str, *tags: Row) -> Sentence:
    """A sentence cut from raw text by our tokenizer, so that every format gives its tokens back."""
    return Sentence.from_text(text, id).with_tags(tags)


HARD = (
    raw("doc:1", "Lena  left Oslo.", "B-PER", "O", "B-LOC", "O"),
    raw("doc:2", "Åse Ødegård-Þór naïve e\u0301", "B-PER", "I-PER", "I-PER", "I-PER", "O", "O"),
    raw("doc:3", "東京🇳🇴 👩‍🚀!", "B-地点", "I-地点", "B-GRÖẞE", "O", "O"),
    raw("doc:4", "nothing here", "O", "O"),
    raw("doc:5", 'he said: "\\n" <b> & \t#', *["O"] * 12),
)
SOFT = raw("s:1", "Lena left", {"B-PER": 0.25, "O": 0.75}, "O")
PARTIAL = raw("p:1", "Lena left Oslo", "B-PER", None, "B-LOC")
PLAIN = raw("n:1", "Lena left Oslo", "NOUN", "VERB", "NOUN")

every = pytest.mark.parametrize("name", FORMATS)
written = pytest.mark.parametrize(
    "name", [name for name, format in FORMATS.items() if format.write is not None]
)


@pytest.fixture(autouse=True)
def _needs_its_extra(request: pytest.FixtureRequest) -> None:
    params = getattr(getattr(request.node, "callspec", None), "params", {})
    if params.get("name") in EXTRAS:
        pytest.importorskip(
            EXTRAS[params["name"]], reason=f"the format {params['name']} needs an optional package"
        )


def there_and_back(
    sentences: Iterable[Sentence], name: str, folder: Path, **options: object
) -> list[Sentence]:
    path = folder / SAMPLES[name].name
    formats.write(iter(sentences), path, name, Options(**options))
    return list(formats.read(path, name, Options(**options)))


def test_no_format_escapes_this_suite() -> None:
    modules = [
        importlib.import_module(f"{formats.__name__}.{info.name}")
        for info in pkgutil.iter_modules(formats.__path__)
    ]
    found = {module.FORMAT.name: module.FORMAT for module in modules if hasattr(module, "FORMAT")}

    assert found == dict(FORMATS)
    assert set(SAMPLES) == set(FORMATS)
    assert all(SAMPLES[name].good for name, format in FORMATS.items() if format.write is None)


@every
def test_what_a_format_holds_is_named_in_words_we_know(name: str) -> None:
    assert FORMATS[name].holds <= {"tokens", "tags", "soft", "missing", "id", "text"}


@written
def test_hard_sentences_come_back_as_they_went(name: str, tmp_path: Path) -> None:
    back = there_and_back(HARD, name, tmp_path)

    assert [s.tokens for s in back] == [s.tokens for s in HARD]
    assert [s.tags for s in back] == [s.tags for s in HARD]
    if "id" in FORMATS[name].holds:
        assert [s.id for s in back] == [s.id for s in HARD]
    if "text" in FORMATS[name].holds:
        assert [(s.text, s.offsets) for s in back] == [(s.text, s.offsets) for s in HARD]


@written
def test_a_cut_other_than_our_own_survives_where_tokens_are_held(name: str, tmp_path: Path) -> None:
    odd = Sentence("o:1", ("U.S.", "don", "'", "t", "New York"), ("B-LOC", "O", "O", "O", "B-LOC"))
    glued = Sentence("o:2", ("ab", "cd"), ("B-X", "O"), "abcd", ((0, 2), (2, 4)))
    back = there_and_back(
        (odd, glued)[: 2 if "tokens" in FORMATS[name].holds else 1], name, tmp_path
    )

    if "tokens" in FORMATS[name].holds:
        assert [s.tokens for s in back] == [odd.tokens, glued.tokens]
        assert [s.tags for s in back] == [odd.tags, glued.tags]
    else:
        assert "".join(back[0].tokens) == "U.S.don'tNewYork"
        assert [tag for tag in back[0].tags if str(tag).startswith("B-")] == ["B-LOC", "B-LOC"]


@written
def test_a_text_that_does_not_give_the_tokens_back_yields_to_the_tokens(
    name: str, tmp_path: Path
) -> None:
    rewritten = Sentence("r:1", ("Oslo", "fell"), ("B-LOC", "O"), "Rome fell", ((0, 4), (5, 9)))

    assert [s.tokens for s in there_and_back([rewritten], name, tmp_path)] == [rewritten.tokens]


@written
def test_unlabeled_stays_unlabeled_beside_labeled(name: str, tmp_path: Path) -> None:
    back = there_and_back(
        [HARD[0], Sentence.from_text("nobody saw this", "doc:2"), HARD[3]], name, tmp_path
    )

    assert sorted((s.tokens, s.labeled) for s in back) == [
        (HARD[0].tokens, True),
        (("nobody", "saw", "this"), False),
        (HARD[3].tokens, True),
    ]


@written
def test_soft_rows_survive_or_are_refused_by_name(name: str, tmp_path: Path) -> None:
    if "soft" in FORMATS[name].holds:
        assert [s.tags for s in there_and_back([SOFT], name, tmp_path)] == [SOFT.tags]
        return
    with pytest.raises(DataError, match="'s:1' has soft labels"):
        there_and_back([SOFT], name, tmp_path)
    assert list(tmp_path.iterdir()) == []

    assert [s.tags for s in there_and_back([SOFT], name, tmp_path, harden=True)] == [("O", "O")]


@written
def test_missing_rows_survive_or_are_refused_by_name(name: str, tmp_path: Path) -> None:
    if "missing" in FORMATS[name].holds:
        assert [s.tags for s in there_and_back([PARTIAL], name, tmp_path)] == [PARTIAL.tags]
        return
    with pytest.raises(DataError, match="'p:1' is labeled in part"):
        there_and_back([PARTIAL], name, tmp_path)


@written
def test_a_span_without_a_type_is_refused_where_a_format_holds_spans_only(
    name: str, tmp_path: Path
) -> None:
    nameless = Sentence("n:1", ("a",), ("B-",))
    if "tags" not in FORMATS[name].holds:
        with pytest.raises(TagError, match="not B- or I- of a span"):
            there_and_back([nameless], name, tmp_path)


@written
def test_tags_that_are_no_spans_survive_or_are_refused_by_name(name: str, tmp_path: Path) -> None:
    if "tags" in FORMATS[name].holds:
        assert [s.tags for s in there_and_back([PLAIN], name, tmp_path)] == [PLAIN.tags]
        return
    with pytest.raises(TagError, match=r"'n:1' has a tag that is not B- or I-.*found 'NOUN'"):
        there_and_back([PLAIN], name, tmp_path)


@written
def test_other_schemes_come_back_as_bio(name: str, tmp_path: Path) -> None:
    assert [s.tags for s in there_and_back(HARD[:4], name, tmp_path, scheme="BIOES")] == [
        s.tags for s in HARD[:4]
    ]


@written
def test_no_sentences_make_a_file_without_sentences(name: str, tmp_path: Path) -> None:
    assert there_and_back([], name, tmp_path) == []


@written
def test_a_sentence_without_tokens_is_passed_over_and_counted(name: str, tmp_path: Path) -> None:
    options = Options()
    formats.write([Sentence("e", ()), HARD[0]], tmp_path / SAMPLES[name].name, name, options)

    assert options.counts["no tokens"] == 1
    assert len(list(formats.read(tmp_path / SAMPLES[name].name, name))) == 1


@every
def test_an_empty_file_or_folder_holds_nothing_or_is_no_such_file(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / SAMPLES[name].name
    if "" in SAMPLES[name].broken:
        path.write_bytes(b"")
    else:
        path.mkdir()
    try:
        assert list(formats.read(path, name)) == []
    except DataError as error:
        assert name in ("docbin", "hf")
        assert str(path) in str(error)


@every
def test_a_broken_record_is_named_with_its_place(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    path = put(tmp_path / sample.name, sample.broken)

    with pytest.raises(DataError) as caught:
        list(formats.read(path, name))

    assert str(path) in str(caught.value.path)
    assert caught.value.line == sample.line
    assert caught.value.text
    assert "\n" not in str(caught.value)


@every
def test_damaged_bytes_are_never_more_than_a_data_error(name: str, tmp_path: Path) -> None:
    sample, rng = SAMPLES[name], random.Random(5)
    path = tmp_path / sample.name
    if sample.good is None:
        formats.write(HARD, path, name)
    else:
        put(path, sample.good)
    files = {
        file: file.read_bytes()
        for file in ([path] if path.is_file() else path.rglob("*"))
        if file.is_file()
    }
    for _ in range(20 if name == "hf" else 150):
        for file, data in files.items():
            file.write_bytes(_damaged(data, rng))
        try:
            list(formats.read(path, name))
        except DataError as error:
            assert str(path) in str(error)


def _damaged(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return rng.choice(
        [
            data[:at],
            data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :],
            data[:at]
            + rng.choice([b"\n", b"\t", b'"', b"{", b"[", b"-1", b"null", b"\\ud800", b"9" * 5000])
            + data[at:],
            data[:at] + data[at + rng.randrange(1, 30) :],
        ]
    )


@every
def test_a_path_that_is_not_there_is_a_data_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        formats.read(tmp_path / "absent", name)


@written
@pytest.mark.parametrize("inside", ["", "new/folders"])
def test_nothing_stays_behind_when_the_source_breaks_half_way(
    name: str, inside: str, tmp_path: Path
) -> None:
    def breaking() -> Iterator[Sentence]:
        yield HARD[0]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        formats.write(breaking(), tmp_path / inside / SAMPLES[name].name, name)

    assert list(tmp_path.iterdir()) == []


@written
def test_what_stood_there_stays_when_the_source_breaks(name: str, tmp_path: Path) -> None:
    path = tmp_path / SAMPLES[name].name
    formats.write(HARD[:2], path, name)

    with pytest.raises(DataError):
        formats.write(
            iter(
                [HARD[0], SOFT, HARD[1]]
                if "soft" not in FORMATS[name].holds
                else [Sentence("x", ("\ud800",))]
            ),
            path,
            name,
        )

    assert [s.tokens for s in formats.read(path, name)] == [s.tokens for s in HARD[:2]]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    formats.write(HARD[2:3], path, name)
    assert [s.tokens for s in formats.read(path, name)] == [HARD[2].tokens]


@written
def test_half_a_character_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="half of a surrogate pair"):
        there_and_back([Sentence("x", ("a\ud83d",))], name, tmp_path)


@written
def test_a_place_that_cannot_be_written_is_a_data_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "x" / SAMPLES[name].name, Path("/")):
        with pytest.raises(DataError):
            formats.write(HARD, path, name)


@every
def test_the_format_is_guessed_back_from_its_own_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / SAMPLES[name].name
    good = SAMPLES[name].good
    if good is None:
        formats.write([Sentence.from_text("nobody saw this", "u:1"), *HARD], path, name)
    else:
        put(path, good)

    assert formats.guess(path).name == name


@written
def test_writing_goes_by_the_name_where_it_has_an_ending(name: str, tmp_path: Path) -> None:
    path = tmp_path / SAMPLES[name].name
    if path.suffix == "":
        with pytest.raises(DataError, match="which format"):
            formats.write(HARD, path)
    else:
        formats.write(HARD, path)
        assert formats.guess(path).name == {".jsonl": "jsonl-tokens", ".json": "labelstudio"}.get(
            path.suffix, name
        )


@pytest.mark.parametrize(("name", "module"), EXTRAS.items())
def test_a_missing_extra_says_what_to_install(
    name: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [m for m in sys.modules if m == module or m.startswith(f"{module}.")]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingExtraError, match=r"pip install 'seqmix\["):
        formats.write(HARD, tmp_path / "x", name)
    assert list(tmp_path.iterdir()) == []


TEXT_FORMATS = [
    "conll",
    "conllu",
    "jsonl-tokens",
    "jsonl-spans",
    "doccano",
    "prodigy",
    "labelstudio",
    "argilla",
]
tokens = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda token: token.strip(" ")
)
rows = st.sampled_from(["O", "B-PER", "I-PER", "B-É"])
labeled = st.lists(st.tuples(tokens, rows), min_size=1, max_size=6)


@pytest.mark.parametrize("name", TEXT_FORMATS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pairs=st.lists(labeled, min_size=1, max_size=3))
def test_any_unicode_token_survives_or_is_refused(
    name: str, pairs: list[list[tuple[str, str]]], tmp_path: Path
) -> None:
    sentences = [
        Sentence(f"d:{i}", tuple(t for t, _ in p), tuple(r for _, r in p))
        for i, p in enumerate(pairs, 1)
    ]
    sentences = [s.with_tags(formats.repair([str(tag) for tag in s.tags])) for s in sentences]
    try:
        formats.write(sentences, tmp_path / SAMPLES[name].name, name)
    except DataError:
        unwritable = any(c in token for s in sentences for token in s.tokens for c in "\t\n\r")
        assert (name in ("conll", "conllu") and unwritable) or (
            name == "prodigy" and any(t.isspace() for s in sentences for t in s.tokens)
        )
        assume(False)

    back = list(formats.read(tmp_path / SAMPLES[name].name, name))

    assert [(s.tokens, s.tags) for s in back] == [(s.tokens, s.tags) for s in sentences]


@pytest.mark.parametrize("name", [*TEXT_FORMATS, "docbin", "brat"])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    seed=st.randoms(use_true_random=False),
)
def test_any_raw_text_survives_where_text_is_held(
    name: str, text: str, seed: random.Random, tmp_path: Path
) -> None:
    sentence = Sentence.from_text(text, "d:1")
    assume(sentence.tokens and not set("\n\r\t") & set(text) and not text.startswith("\ufeff"))
    tags = formats.repair([seed.choice(["O", "B-PER", "I-PER"]) for _ in sentence.tokens])
    back = there_and_back([sentence.with_tags(tags)], name, tmp_path)

    assert [(s.tokens, s.tags) for s in back] == [(sentence.tokens, tuple(tags))]
    if "text" in FORMATS[name].holds:
        assert [(s.text, s.offsets) for s in back] == [(sentence.text, sentence.offsets)]
