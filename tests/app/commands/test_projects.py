"""Projects from the command line: raw text in, labels out, errors in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence
from seqmix.serve.project import TRAIN_NOW, Project, add_text, open_project
from seqmix.serve.settings import read_settings
from seqmix.serve.sources.llm.annotator import annotator_of
from seqmix.serve.sources.llm.endpoint import Endpoint
from seqmix.serve.sources.records import LLM, add_source
from seqmix.serve.store.annotators import add_annotator, annotator_by_token, find_annotator
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.current import current_answers, read_counts
from seqmix.serve.store.queue import Rules, next_sentence
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.records import Generation, Mark
from seqmix.serve.store.sentences import read_audit_sentences, read_labeled, read_sentences


@pytest.fixture
def notes(tmp_path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text(
        "Lena left Oslo.\n\nAcme hired Bo in Rome.\nLena left Oslo.\nשלום 😀 東京\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def folder(seqmix_command, notes, tmp_path) -> Path:
    assert seqmix_command("init", tmp_path / "p", "--text", notes, "--tags", "PER,LOC").code == 0
    return tmp_path / "p"


def stored(folder: Path) -> list[Sentence]:
    with open_project(folder) as project:
        return list(read_sentences(project.store))


def label(project: Project, id: str, marks: list[Mark], sure=None, name: str = "anna") -> None:
    if find_annotator(project.store, name) is None:
        add_annotator(project.store, name)
    who = find_annotator(project.store, name).id
    save_answer(
        project.store,
        id,
        who,
        "label",
        marks,
        sure,
        seconds=4.0,
        version=answer_version(project.store, id, who),
    )


# init


def test_init_makes_a_project_of_raw_text_and_says_what_to_do_next(seqmix_command, notes, tmp_path):
    ended = seqmix_command("init", tmp_path / "p", "--text", notes, "--tags", "PER, ORG,LOC")

    assert ended.code == 0
    assert ended.out.startswith(
        f"{tmp_path}/p: 3 sentences to label, 1 of them set apart for an honest F1; "
        "1 duplicate stored once\n"
    )
    assert f"seqmix annotate {tmp_path}/p" in ended.out
    assert f"seqmix project {tmp_path}/p annotator add NAME" in ended.out
    assert [(s.id, s.text) for s in stored(tmp_path / "p")] == [
        ("notes:1", "Lena left Oslo."),
        ("notes:3", "Acme hired Bo in Rome."),
        ("notes:5", "שלום 😀 東京"),
    ]
    assert read_settings(tmp_path / "p").tags == ("PER", "ORG", "LOC")


def test_pasted_paragraphs_become_sentences(seqmix_command, tmp_path):
    (tmp_path / "notes.txt").write_text("Dr. Ada left Oslo. She was late!\n\nBo stayed.\n")
    words = ("init", tmp_path / "p", "--text", tmp_path / "notes.txt", "--tags", "PER")

    assert seqmix_command(*words).code == 0
    assert [(s.id, s.text) for s in stored(tmp_path / "p")] == [
        ("notes:1", "Dr. Ada left Oslo."),
        ("notes:1.2", "She was late!"),
        ("notes:3", "Bo stayed."),
    ]


def test_lines_may_be_the_unit(seqmix_command, tmp_path):
    (tmp_path / "notes.txt").write_text("One. Two.\nThree.\n")
    words = ("init", tmp_path / "p", "--text", tmp_path / "notes.txt", "--tags", "PER")

    assert seqmix_command(*words, "--read", "unit=line").code == 0
    assert [s.text for s in stored(tmp_path / "p")] == ["One. Two.", "Three."]


def test_text_added_later_is_cut_as_the_project_began(seqmix_command, tmp_path):
    first, more = tmp_path / "first.txt", tmp_path / "more.txt"
    first.write_text("Write to jo@x.org now\n")
    more.write_text("See https://x.org/a?b=1, please\n")
    words = ("init", tmp_path / "p", "--text", first, "--tags", "PER", "--read", "tokens=web")
    assert seqmix_command(*words).code == 0
    assert seqmix_command("project", tmp_path / "p", "text", "add", more).code == 0

    assert read_settings(tmp_path / "p").tokens == "web"
    assert sorted(s.tokens for s in stored(tmp_path / "p")) == [
        ("See", "https://x.org/a?b=1", ",", "please"),
        ("Write", "to", "jo@x.org", "now"),
    ]


def test_paragraphs_may_be_the_unit(seqmix_command, tmp_path):
    (tmp_path / "notes.txt").write_text("One line\nanother\n\n\nand more\n")
    assert (
        seqmix_command(
            "init",
            tmp_path / "p",
            "--text",
            tmp_path / "notes.txt",
            "--tags",
            "PER",
            "--read",
            "unit=paragraph",
        ).code
        == 0
    )

    assert [(s.id, s.text) for s in stored(tmp_path / "p")] == [
        ("notes:1", "One line\nanother"),
        ("notes:5", "and more"),
    ]


def test_a_folder_of_text_files_is_read_file_by_file(seqmix_command, tmp_path):
    for name in ("a", "b"):
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / f"{name}.txt").write_text(f"First of {name}\nSecond of {name}\n")
    assert (
        seqmix_command("init", tmp_path / "p", "--text", tmp_path / "texts", "--tags", "PER").code
        == 0
    )

    assert [(s.id, s.text) for s in stored(tmp_path / "p")] == [
        (f"{name}:{i}", f"{word} of {name}")
        for name in "ab"
        for i, word in ((1, "First"), (2, "Second"))
    ]


def test_json_lines_with_text_are_read(seqmix_command, tmp_path):
    lines = [{"id": 7, "text": "Lena left.", "author": "x"}, {"text": "a\0b <i>"}]
    (tmp_path / "notes.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    assert (
        seqmix_command(
            "init", tmp_path / "p", "--text", tmp_path / "notes.jsonl", "--tags", "PER"
        ).code
        == 0
    )

    assert [(s.id, s.text) for s in stored(tmp_path / "p")] == [
        ("7", "Lena left."),
        ("notes:2", "a\0b <i>"),
    ]


@pytest.mark.parametrize(("suffix", "between"), [(".csv", ","), (".tsv", "\t")])
def test_a_column_of_a_table_is_read(seqmix_command, tmp_path, suffix, between):
    rows = [
        ["id", "body"],
        ["1", '"Lena, who ""left"""'],
        ["2", ""],
        ["3", f'"two\nlines {"x" * 200_000}"'],
    ]
    path = tmp_path / f"notes{suffix}"
    path.write_text(
        "\ufeff" + "\n".join(between.join(row) for row in rows) + "\n", encoding="utf-8"
    )
    assert (
        seqmix_command(
            "init", tmp_path / "p", "--text", path, "--read", "csv:column=body", "--tags", "PER"
        ).code
        == 0
    )

    assert [(s.id, s.text[:20]) for s in stored(tmp_path / "p")] == [
        ("notes:2", 'Lena, who "left"'),
        ("notes:5", "two"),
        ("notes:5.2", "lines xxxxxxxxxxxxxx"),
    ]


def test_a_row_of_a_table_may_be_the_unit(seqmix_command, tmp_path):
    (tmp_path / "notes.csv").write_text('body\n"One. Two.\nthree"\n')
    words = ("init", tmp_path / "p", "--text", tmp_path / "notes.csv", "--tags", "PER")

    assert seqmix_command(*words, "--read", "csv:column=body,unit=line").code == 0
    assert [(s.id, s.text) for s in stored(tmp_path / "p")] == [("notes:3", "One. Two.\nthree")]


def test_a_table_needs_a_column_that_is_there(seqmix_command, tmp_path):
    (tmp_path / "notes.csv").write_text("id,body\n1,x\n")
    for more, message in (
        ((), "which column of"),
        (
            ("--read", "column=text"),
            "notes.csv:1: there is no column 'text'; there are 'id', 'body'",
        ),
    ):
        ended = seqmix_command(
            "init", tmp_path / "p", "--text", tmp_path / "notes.csv", "--tags", "PER", *more
        )
        assert (ended.code, len(ended.err.splitlines())) == (2, 1)
        assert message in ended.err
    (tmp_path / "bad.csv").write_bytes(b"body\n\xff\xfe\n")
    assert (
        "expected UTF-8 text"
        in seqmix_command(
            "init",
            tmp_path / "p",
            "--text",
            tmp_path / "bad.csv",
            "--read",
            "column=body",
            "--tags",
            "A",
        ).err
    )


def test_labels_in_the_text_are_kept_or_dropped_as_told(seqmix_command, tmp_path):
    given = ("--text", "gazette:dev", "--tags", "PER,ORG,LOC,MISC")
    ended = seqmix_command("init", tmp_path / "p", *given)
    assert ended.code == 2
    assert "--labels keep uses them as seed, --labels drop asks for them again" in ended.err

    assert seqmix_command("init", tmp_path / "p", *given, "--labels", "drop").code == 0
    with open_project(tmp_path / "p") as project:
        assert (read_counts(project.store).seed, read_counts(project.store).sentences) == (
            0,
            len({s.tokens for s in sample("gazette:dev")}),
        )
    partly = tmp_path / "part.conll"
    formats.write(
        [s if i < 3 else s.unlabeled() for i, s in enumerate(sample("gazette:dev"))], partly
    )
    ended = seqmix_command(
        "init", tmp_path / "q", "--text", partly, "--tags", "PER,ORG,LOC,MISC", "--labels", "keep"
    )
    assert "3 sentences already have labels: the seed" in ended.out
    with open_project(tmp_path / "q") as project:
        assert [s.tags for s in read_labeled(project.store)] == [
            s.tags for s in sample("gazette:dev")[:3]
        ]


def test_seed_labels_come_from_a_file_of_their_own(seqmix_command, notes, tmp_path):
    seed = tmp_path / "other" / "notes.conll"
    formats.write([Sentence("x", ("Bo", "left"), ("B-PER", "O"))], seed)
    assert (
        seqmix_command(
            "init", tmp_path / "p", "--text", notes, "--tags", "PER,LOC", "--seed-labels", seed
        ).code
        == 0
    )

    with open_project(tmp_path / "p") as project:
        assert [(s.id, s.tags) for s in read_labeled(project.store)] == [
            ("seed:notes:1", ("B-PER", "O"))
        ]


def test_guidelines_and_settings_are_kept(seqmix_command, notes, tmp_path):
    (tmp_path / "how.md").write_text("# Mark names\n")
    given = (
        "--guidelines",
        tmp_path / "how.md",
        "--policy",
        "mnlp",
        "--set",
        "audit_share=0.3",
        "--set",
        "overlap_share=0.2",
        "--set",
        "direction=rtl",
        "--set",
        "name=My notes",
    )
    assert (
        seqmix_command("init", tmp_path / "p", "--text", notes, "--tags", "PER", *given).code == 0
    )

    with open_project(tmp_path / "p") as project:
        settings = project.settings
        assert project.guidelines == "# Mark names\n"
    assert (settings.name, settings.policy, settings.audit_share, settings.overlap_share) == (
        "My notes",
        "mnlp",
        0.3,
        0.2,
    )
    assert settings.direction == "rtl"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tags", "PER,PER"], "a tag is named twice; found 'PER'"),
        (["--tags", "PER SON"], "without white space; found 'PER SON'"),
        (["--tags", "PER,O"], "means that nothing is there"),
        (
            ["--tags", ",".join(f"T{i}" for i in range(36))],
            "at most 35 tags, since each has a key; found 36",
        ),
        (["--tags", ""], "printable characters"),
        (
            ["--tags", "PER", "--text", "nowhere.txt"],
            "nowhere.txt: there is no such file or folder",
        ),
        (["--tags", "PER", "--policy", "best"], "query.policy: must be one of"),
        (["--tags", "PER", "--policy", "lc", "--set", "head=linear"], "needs tagger.head crf"),
        (
            ["--tags", "PER", "--set", "audit_share=2"],
            "audit_share must be at most 0.9; got 2",
        ),
        (["--tags", "PER", "--labels", "some"], "--labels must be keep or drop; got 'some'"),
        (
            ["--tags", "PER", "--read", "unit=page"],
            "--read: unit must be sentence, line or paragraph; got 'page'",
        ),
        (["--tags", "PER", "--guidelines", "nowhere.md"], "nowhere.md: cannot read the guidelines"),
        (
            ["--tags", "PER", "--store", "mysql://localhost/x"],
            "store must be postgresql://user@host/database, or left out",
        ),
        (
            ["--tags", "PER", "--seed-labels", "gazette:dev"],
            "has a label that is not B- or I- and one of this project's tags PER",
        ),
    ],
)
def test_what_makes_no_project_is_one_line_and_leaves_nothing(
    seqmix_command, notes, tmp_path, arguments, message
):
    ended = seqmix_command("init", tmp_path / "new" / "p", "--text", notes, *arguments)

    assert ended.code == 2
    assert message in ended.err
    assert ended.err.startswith("error: ")
    assert len(ended.err.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_empty_text_and_an_existing_project_are_refused(seqmix_command, folder, notes, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")

    assert (
        "there is nothing to label"
        in seqmix_command(
            "init", tmp_path / "q", "--text", tmp_path / "empty.txt", "--tags", "PER"
        ).err
    )
    assert (
        "is already a project"
        in seqmix_command("init", folder, "--text", notes, "--tags", "PER").err
    )


# export


def test_what_is_exported_is_what_was_labeled(seqmix_command, folder, tmp_path):
    with open_project(folder) as project:
        label(project, "notes:1", [Mark(0, 1, "PER"), Mark(2, 3, "LOC")])
        label(project, "notes:3", [Mark(2, 3, "PER")])
    ended = seqmix_command("export", folder, "--to", "conll", "--out", tmp_path / "out.conll")

    assert ended.err == f"2 sentences written to {tmp_path}/out.conll\n"
    assert (tmp_path / "out.conll").read_text() == (
        "Lena\tB-PER\nleft\tO\nOslo\tB-LOC\n.\tO\n\nAcme\tO\nhired\tO\nBo\tB-PER\nin\tO\nRome\tO\n.\tO\n\n"
    )


def test_all_writes_the_unlabeled_too(seqmix_command, folder, tmp_path):
    ended = seqmix_command("export", folder, "--out", tmp_path / "out.jsonl")
    assert (ended.code, "nobody has labeled a sentence" in ended.err) == (2, True)
    with open_project(folder) as project:
        label(project, "notes:3", [Mark(2, 3, "PER")])
    assert (
        seqmix_command("export", folder, "--split", "all", "--out", tmp_path / "out.jsonl").code
        == 0
    )

    found = list(formats.read(tmp_path / "out.jsonl"))
    assert [(s.id, s.labeled) for s in found] == [
        ("notes:1", False),
        ("notes:3", True),
        ("notes:5", False),
    ]


@pytest.mark.parametrize(
    "format",
    [
        name
        for name, one in formats.FORMATS.items()
        if one.write is not None and name not in ("docbin", "hf", "conllu")
    ],
)
def test_every_format_takes_an_export(seqmix_command, folder, tmp_path, format):
    with open_project(folder) as project:
        label(project, "notes:1", [Mark(0, 1, "PER"), Mark(2, 3, "LOC")])
    out = tmp_path / "out"
    ended = seqmix_command("export", folder, "--to", format, "--out", out)

    assert ended.code == 0, ended.err
    (found,) = formats.read(out, format)
    assert found.tokens == ("Lena", "left", "Oslo", ".")
    assert found.tags == ("B-PER", "O", "B-LOC", "O")


def test_partial_labels_stay_partial_or_are_dropped_where_the_format_cannot_say_it(
    seqmix_command, folder, tmp_path
):
    with open_project(folder) as project:
        label(project, "notes:1", [Mark(0, 1, "PER")], sure=[(0, 2)])
        label(project, "notes:3", [])
    assert seqmix_command("export", folder, "--out", tmp_path / "out.conll").code == 0
    assert next(formats.read(tmp_path / "out.conll")).tags == ("B-PER", "O", None, None)

    ended = seqmix_command("export", folder, "--to", "doccano", "--out", tmp_path / "out.jsonl")
    assert ended.code == 2
    assert "sentence 'notes:1' is labeled in part" in ended.err
    assert "--partial drop" in ended.err
    ended = seqmix_command(
        "export",
        folder,
        "--to",
        "doccano",
        "--out",
        tmp_path / "out.jsonl",
        "--partial",
        "drop",
    )
    assert ended.err == f"1 sentence written to {tmp_path}/out.jsonl; 1 partly labeled left out\n"


def test_a_stream_is_exported_by_itself(seqmix_command, folder, tmp_path):
    with open_project(folder) as project:
        for id in ("notes:1", "notes:3", "notes:5"):
            label(project, id, [Mark(0, 1, "PER")])
        streams = {a.sentence_id: a.stream for a in current_answers(project.store)}
    assert set(streams.values()) == {"audit", "active"}
    for stream in ("audit", "active"):
        out = tmp_path / f"{stream}.conll"
        ended = seqmix_command("export", folder, "--split", stream, "--out", out)
        assert ended.code == 0, ended.err
        ids = [id for id in streams if streams[id] == stream]
        assert len(list(formats.read(out))) == len(ids)
        assert f"{len(ids)} sentence" in ended.err
    ended = seqmix_command("export", folder, "--split", "seed", "--out", tmp_path / "x.conll")
    assert (ended.code, "a sentence of the stream seed of" in ended.err) == (2, True)


def test_answers_are_exported_with_who_gave_them_and_when(seqmix_command, folder, tmp_path):
    with open_project(folder) as project:
        label(project, "notes:1", [Mark(0, 1, "PER")])
        label(project, "notes:3", [], sure=[(0, 2)], name="bo")
        bo = find_annotator(project.store, "bo").id
        shown = next_sentence(project.store, bo, Rules(0.0, 1.0))
        assert shown.sentence.id == "notes:1"
        label(project, "notes:1", [Mark(0, 1, "LOC")], name="bo")
        judge = find_annotator(project.store, "anna").id
        version = answer_version(project.store, "notes:1")
        save_answer(
            project.store, "notes:1", judge, "adjudicate", [Mark(0, 1, "LOC")], version=version
        )
    out = tmp_path / "answers.jsonl"
    ended = seqmix_command("export", folder, "--split", "answers", "--out", out)

    assert ended.err == f"4 answers written to {out}\n"
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(a["id"], a["annotator"], a["kind"], a["counts"]) for a in lines] == [
        ("notes:1", "anna", "label", False),
        ("notes:3", "bo", "label", True),
        ("notes:1", "bo", "label", False),
        ("notes:1", "anna", "adjudicate", True),
    ]
    assert lines[0]["seconds"] == 4.0 and lines[0]["stream"] in ("audit", "active")
    assert lines[0]["suggested_by"] is None and lines[0]["at"].endswith("+00:00")
    assert lines[1]["ner_tags"][:3] == ["O", "O", None]
    assert [s.tags[0] for s in formats.read(out)] == ["B-PER", "O", "B-LOC", "B-LOC"]

    mine = tmp_path / "bo.conll"
    assert seqmix_command("export", folder, "--split", "answers:bo", "--out", mine).code == 0
    assert [s.tags[0] for s in formats.read(mine)] == ["O", "B-LOC"]


def test_exports_keep_what_suggested_and_what_was_answered_in_one_go(
    seqmix_command, folder, tmp_path
):
    with open_project(folder) as project:
        store = project.store
        add_annotator(store, "anna")
        anna = find_annotator(store, "anna").id
        ids = [s.id for s in read_sentences(store)]
        audit = {s.id for s in read_audit_sentences(store)}
        first, second = (id for id in ids if id not in audit)
        batch = add_batch(store, "accept", anna, {})
        shown = {"model": [2, 1], "places": [1, 0, "dictionary"], "gpt": [1, 1, "llm", "qwen"]}
        save_answer(store, first, anna, "label", [Mark(0, 1, "PER")], seconds=2.0, shown=shown)
        save_answer(store, second, anna, "label", [], stream="bulk", batch=batch)
    out = tmp_path / "answers.jsonl"

    assert seqmix_command("export", folder, "--split", "answers", "--out", out).code == 0
    one, two = (json.loads(line) for line in out.read_text().splitlines())
    assert one["sources"] == {
        "model": {"offered": 2, "kept": 1},
        "places": {"offered": 1, "kept": 0, "kind": "dictionary"},
        "gpt": {"offered": 1, "kept": 1, "kind": "llm", "model": "qwen"},
    }
    assert (one["batch"], one["bulk"], one["stream"]) == (None, None, "active")
    assert (two["sources"], two["batch"], two["stream"]) == (None, "accept", "bulk")
    for split, expected in (("active", [first]), ("bulk", [second]), ("labeled", [first, second])):
        path = tmp_path / f"{split}.jsonl"
        assert seqmix_command("export", folder, "--split", split, "--out", path).code == 0
        assert sorted(s.id for s in formats.read(path)) == sorted(expected)


def test_answers_of_language_models_are_a_part_of_their_own(seqmix_command, folder, tmp_path):
    with open_project(folder) as project:
        store = project.store
        audit = {s.id for s in read_audit_sentences(store)}
        first, second = (s.id for s in read_sentences(store) if s.id not in audit)
        source = add_source(store, "gpt", LLM, Endpoint("http://127.0.0.1:1", "m").to_json())
        model = annotator_of(store, source).id
        label(project, first, [Mark(0, 1, "PER")])
        save_answer(store, second, model, "label", [], stream="source")
        for id in audit:
            label(project, id, [])
    out = tmp_path / "out.jsonl"

    for split, expected in (("active", [first]), ("source", [second])):
        ended = seqmix_command("export", folder, "--split", split, "--out", out)
        assert (ended.code, ended.err) == (0, f"1 sentence written to {out}\n")
        assert [s.id for s in formats.read(out)] == expected
    for split in ("labeled", "all"):
        ended = seqmix_command("export", folder, "--split", split, "--out", out)
        mixed = "of these 1 audit, 1 active, 1 source (by language models)"
        assert ended.err == f"3 sentences written to {out}; {mixed}\n"


def test_export_refuses_in_one_line(seqmix_command, folder, tmp_path):
    with open_project(folder) as project:
        label(project, "notes:1", [])
    for arguments, message in (
        (("--to", "pdf", "--out", tmp_path / "x"), "there is no format 'pdf'"),
        (("--to", "text", "--out", tmp_path / "x"), "can be read only"),
        (("--out", tmp_path / "x.unknown"), "which format should it have"),
        (
            ("--out", tmp_path / "x.conll", "--partial", "some"),
            "--partial must be keep or drop; got 'some'",
        ),
        (
            ("--out", tmp_path / "x.conll", "--split", "half"),
            "--split must be one of "
            "labeled, all, audit, active, bulk, source, seed, answers or answers:NAME",
        ),
        (
            ("--out", tmp_path / "x.conll", "--split", "answers:nobody"),
            "there is no answer of the annotator 'nobody' in this project",
        ),
        (
            ("--out", tmp_path / "x", "--split", "answers", "--to", "conll"),
            "--split answers is written as jsonl-tokens; got --to conll",
        ),
    ):
        ended = seqmix_command("export", folder, *arguments)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1)
        assert message in ended.err
    assert (
        "is not a project" in seqmix_command("export", tmp_path, "--out", tmp_path / "x.conll").err
    )


# project


def test_status_says_how_far_how_good_and_how_agreed(seqmix_command, notes, tmp_path):
    folder = tmp_path / "p"
    given = (
        "--text",
        notes,
        "--tags",
        "PER,LOC",
        "--set",
        "audit_share=0.3",
        "--set",
        "overlap_share=1",
    )
    assert seqmix_command("init", folder, *given).code == 0
    assert "model: none yet" in seqmix_command("info", folder).out
    with open_project(folder) as project:
        store = project.store
        audit = read_audit_sentences(store)[0].id
        label(project, audit, [Mark(0, 1, "PER")])
        publish_generation(store, Generation(1, 5, audit=[{"id": audit, "marks": [[0, 1, "PER"]]}]))
        add_annotator(store, "bo", admin=True)
        for who, marks in ((1, [Mark(0, 1, "PER")]), (2, [])):
            sentence = next_sentence(store, who, Rules(0.0, 1.0))
            save_answer(
                store,
                sentence.sentence.id,
                who,
                "label",
                marks,
                seconds=2.0,
                version=sentence.version,
            )

    lines = seqmix_command("info", folder).out.splitlines()
    assert lines[0] == (
        "p: 2 of 3 sentences labeled, 1 left (1 of the labeled drawn at random, 1 answered twice)"
    )
    assert "  anna: 2 labeled, 0 skipped, 3.0 s each" in lines
    assert "  bo (admin): 1 labeled, 0 skipped, 2.0 s each" in lines
    assert "model: generation 1, trained on 5 sentences" in lines
    assert "F1: not known yet; it needs at least 2 more audit answers with a span" in lines
    assert not any(line.startswith("forecast") for line in lines)
    assert any(
        line.startswith("agreement: span F1 0.0, kappa")
        and line.endswith("on 1 sentence; 1 in dispute")
        for line in lines
    )
    found = json.loads(seqmix_command("info", folder, "--json").out)
    assert found["answers"]["left"] == 1
    assert (found["audit"], found["lacking"]) == (None, {"audit": 2, "forecast": 9, "models": 4})


def test_status_and_page_say_the_same_of_f1_and_forecast(seqmix_command, tmp_path):
    folder, text = tmp_path / "p", tmp_path / "t.txt"
    text.write_text("".join(f"Ada met number {n} .\n" for n in range(40)), encoding="utf-8")
    assert (
        seqmix_command(
            "init",
            folder,
            "--text",
            text,
            "--read",
            "text",
            "--tags",
            "PER",
            "--set",
            "audit_share=0.5",
        ).code
        == 0
    )
    with open_project(folder) as project:
        asked = read_audit_sentences(project.store)[:12]
        for sentence in asked:
            label(project, sentence.id, [Mark(0, 1, "PER")])
        for number in range(1, 7):
            marks = [
                {"id": one.id, "marks": [[0, 1, "PER"]] if at < 2 * number - 1 else []}
                for at, one in enumerate(asked)
            ]
            publish_generation(project.store, Generation(number, 10 * number, audit=marks))
            if number == 3:
                early = seqmix_command("info", folder).out
    lines = seqmix_command("info", folder).out.splitlines()

    assert "forecast: too early to say; it needs at least 2 more models" in early.splitlines()
    assert re.search(r"^F1: 95\.7 \(\d+\.\d to \d+\.\d, 95 %\) on 12 random sentences$", lines[5])
    assert re.search(
        r"^forecast: 30 more answers \(about \d+ (?:s|min)\) should bring "
        r"\+\d+\.\d \([+-]\d+\.\d to \+\d+\.\d, 90 %\)$",
        lines[6],
    )
    assert re.search(
        r"^goal: 28 more answers \(about \d+ (?:s|min)\) until all of the text is labeled$",
        lines[7],
    )
    assert re.search(r"^time: \d+\.\d s per answer, median of 12; about ", lines[8])


def test_annotators_get_a_link_each_which_is_shown_once(seqmix_command, folder):
    ended = seqmix_command(
        "project", folder, "annotator", "add", "Zoë", "bo", "--url", "http://host:1/"
    )

    links = dict(line.split("\t") for line in ended.out.splitlines())
    assert set(links) == {"Zoë", "bo"}
    token = links["bo"].removeprefix("http://host:1/login?token=")
    with open_project(folder) as project:
        assert annotator_by_token(project.store, token).name == "bo"
    assert seqmix_command("project", folder).out.endswith("Zoë\t0 labeled\nbo\t0 labeled\n")

    renewed = (
        seqmix_command("project", folder, "annotator", "renew", "bo").out.split("token=")[1].strip()
    )
    seqmix_command("project", folder, "annotator", "revoke", "Zoë")
    with open_project(folder) as project:
        assert annotator_by_token(project.store, token) is None
        assert annotator_by_token(project.store, renewed).name == "bo"
        assert annotator_by_token(project.store, links["Zoë"].split("token=")[1]) is None
    assert (
        "no annotator named 'cy'; this project has Zoë, bo"
        in seqmix_command("project", folder, "annotator", "renew", "cy").err
    )
    assert (
        "an annotator with this name already exists"
        in seqmix_command("project", folder, "annotator", "add", "bo").err
    )


def test_settings_can_be_changed(seqmix_command, folder):
    assert (
        seqmix_command(
            "project",
            folder,
            "--set",
            "overlap_share=0.5",
            "--set",
            "policy=mnlp",
        ).code
        == 0
    )
    assert seqmix_command("project", folder, "tag", "add", "ORG").code == 0

    settings = read_settings(folder)
    assert (settings.overlap_share, settings.policy, settings.tags) == (
        0.5,
        "mnlp",
        ("PER", "LOC", "ORG"),
    )
    assert (
        "overlap_share must be at most 1; got 3.0"
        in seqmix_command("project", folder, "--set", "overlap_share=3.0").err
    )
    changes = ("--set", "policy=lc", "--set", "head=linear")
    assert "needs tagger.head crf" in seqmix_command("project", folder, *changes).err
    for change, message in (
        ("batch=x", "batch must be a whole number; got 'x'"),
        ("btach=20", "btach: there is no such key; did you mean batch?"),
        ("tags=[]", "--set does not change tags: change them with the actions tag add"),
        ("batch", "--set must look like key=value"),
    ):
        ended = seqmix_command("project", folder, "--set", change)
        assert (ended.code, message in ended.err, len(ended.err.splitlines())) == (2, True, 1)
    assert read_settings(folder) == settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("trust", "--set", "batch=3"), "--set and trust do not go together"),
        (("annotator", "renew", "bo", "--admin"), "annotator add NAME"),
        (("--url", "http://x"), "annotator add NAME"),
        (("backup", "x", "--url", "http://x"), "annotator add NAME"),
        (("trust",), "it has no database to trust"),
        (("bakcup", "x"), "there is no action 'bakcup x'; did you mean backup? There are tag add"),
        (("tag",), "there is no action 'tag'; There are tag add"),
        (("text", "add"), "FOLDER text add FILE… [keep/drop]; got 'text add'"),
        (("trust", "--read", "conll"), "--read belongs to files: text add FILE"),
        (("--read", "conll"), "--read belongs to files: text add FILE"),
        (("annotator", "ad"), "There are annotator add, annotator renew, annotator revoke"),
        (("backup",), "must look like: seqmix project FOLDER backup FOLDER; got 'backup'"),
        (("trust", "me"), "must look like: seqmix project FOLDER trust; got 'trust me'"),
        (("tag", "add", "A", "none", "B"), "FOLDER tag add NAME [none/unknown]; got"),
        (("annotator", "add"), "FOLDER annotator add NAME…; got 'annotator add'"),
    ],
)
def test_actions_of_project_that_make_no_sense_are_refused(
    seqmix_command, folder, options, message
):
    ended = seqmix_command("project", folder, *options)

    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert message in ended.err


def test_a_new_tag_asks_what_earlier_answers_mean_and_reaches_a_running_server(
    seqmix_command, folder
):
    with open_project(folder) as running:
        ids = [sentence.id for sentence in read_sentences(running.store)]
        label(running, ids[0], [Mark(0, 1, "PER")])
        label(running, ids[1], [])
        refused = seqmix_command("project", folder, "tag", "add", "ORG")
        assert refused.code == 2
        assert "tag add ORG none" in refused.err and "tag add ORG unknown" in refused.err
        assert read_settings(folder).tags == ("PER", "LOC")
        assert (
            "what earlier answers mean for ORG must be none or unknown; got 'maybe'"
            in seqmix_command("project", folder, "tag", "add", "ORG", "maybe").err
        )

        assert seqmix_command("project", folder, "tag", "add", "ORG", "unknown").code == 0
        label(running, ids[2], [Mark(0, 1, "ORG")])  # by the server that was there before
        found = {sentence.id: sentence.tags for sentence in read_labeled(running.store)}
    assert found[ids[0]][0] == "B-PER" and set(found[ids[0]][1:]) == {None}
    assert set(found[ids[1]]) == {None}
    assert found[ids[2]][0] == "B-ORG" and set(found[ids[2]][1:]) == {"O"}


def test_with_earlier_none_answers_say_that_the_new_tag_is_not_there(seqmix_command, folder):
    with open_project(folder) as project:
        id = next(iter(read_sentences(project.store))).id
        label(project, id, [Mark(0, 1, "PER")])
    added = seqmix_command("project", folder, "tag", "add", "ORG", "none")
    assert (added.code, added.err.splitlines()[0]) == (0, "tag add ORG: 1 answer")
    with open_project(folder) as project:
        (labeled,) = read_labeled(project.store)
        assert None not in labeled.tags


def test_tags_are_changed_by_command_once_the_touched_answers_were_shown(seqmix_command, folder):
    def tag(*words):
        return seqmix_command("project", folder, "tag", *words)

    with open_project(folder) as project:
        first, second = [s.id for s in read_sentences(project.store)][:2]
        label(project, first, [Mark(0, 1, "PER")])
        label(project, second, [Mark(0, 1, "PER"), Mark(1, 2, "PER")])
    asked = tag("rename", "PER", "Person")
    assert asked.code == 2
    assert "tag rename PER Person: 2 answers with 3 spans" in asked.err
    assert "nothing is changed yet: tag rename PER Person yes does it" in asked.err
    assert read_settings(folder).tags == ("PER", "LOC")

    assert tag("rename", "PER", "Person", "yes").out.strip() == "Person,LOC"
    assert "2 answers" in tag("split", "Person", "Hero", "Crowd").err
    assert tag("split", "Person", "Hero", "Crowd", "yes").out.strip() == "Hero,Crowd,LOC"
    assert tag("merge", "Crowd", "LOC", "yes").out.strip() == "Hero,LOC"
    assert tag("undo", "yes").out.strip() == "Hero,Crowd,LOC"
    assert tag("retire", "Crowd", "yes").out.strip() == "Hero,LOC"
    assert tag("recolor", "LOC", "8").code == 0
    assert tag("list").out == "Hero\tcolor 1\tkey 1\t0 spans\nLOC\tcolor 8\tkey 2\t0 spans\n"
    assert read_settings(folder).tags == ("Hero", "LOC")
    for words, message in (
        (("recolor", "LOC", "13"), "a color is a number from 1 to 12"),
        (("recolor", "LOC", "red"), "a color is a number from 1 to 12"),
        (("rename", "ORG", "X", "yes"), "this project has the tags Hero, LOC"),
        (("merge", "Hero", "X", "yes"), "there is no tag X: rename Hero to it"),
        (("split", "Hero", "A", "yes"), "a tag is split into two tags or more"),
        (("rename", "Hero"), "FOLDER tag rename TAG NAME [yes]; got 'tag rename Hero'"),
    ):
        ended = tag(*words)
        assert (ended.code, message in ended.err) == (2, True), ended.err


def test_a_dictionary_is_added_listed_turned_off_and_removed(seqmix_command, folder, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("Oslo\tLOC\nre:B[a-z]\tPER\n")

    def source(*words):
        return seqmix_command("project", folder, "source", *words)

    assert source("add", "names", "dictionary", terms, "ignore-case").code == 0
    assert source("list").out == "names\tdictionary\ton\n"
    assert source("off", "names").code == 0
    assert source("list").out == "names\tdictionary\toff\n"
    assert source("on", "names").code == 0
    for words, why in [
        (("add", "names", "dictionary", terms), "already exists"),
        (("add", "more", "book", terms), "must be one of dictionary"),
        (("add", "more", "dictionary", terms, terms), "must look like: source add"),
        (("add", "more", "dictionary", tmp_path / "none.tsv"), "cannot read"),
        (("off", "nobody"), "no source 'nobody'"),
    ]:
        said = source(*words)
        assert said.code == 2
        assert why in said.err
    assert source("remove", "names").code == 0
    assert source("list").out == ""

    old = tmp_path / "old.conll"
    old.write_text("Lena B-PER\nleft O\nOslo B-LOC\n. O\n\nRome B-LOC\n", encoding="utf-8")
    added = source("add", "old", "predictions", old, "--read", "conll:tag=-1")
    assert added.code == 0
    assert "1 sentences that are not in the project left out" in added.out
    assert source("add", "starter", "types").code == 0
    said = source("add", "gpt", "llm", "https://models.example/v1/", "m")
    assert said.code == 0
    assert "nothing is sent before you say yes" in said.err
    assert "'send_text_to=https://models.example'" in said.err
    assert source("answers", "gpt", "0.2").code == 0
    for share, why in [("2", "between 0 and 0.9"), ("half", "got 'half'")]:
        assert why in source("answers", "gpt", share).err
    assert "only a language model can answer" in source("answers", "old", "0.1").err
    assert source("remove", "gpt").code == 0
    assert source("list").out == "old\tpredictions\ton\nstarter\ttypes\ton\n"
    for words, why in [
        (("add", "more", "llm", "http://127.0.0.1:1/v1"), "must look like: source add NAME llm"),
        (("add", "more", "llm", "file:///etc/passwd", "m"), "an address must look like"),
        (("add", "more", "types", "now"), "types takes no further words"),
        (("add", "more", "predictions"), "must look like: source add NAME predictions FILE"),
        (("add", "more", "tagger"), "must look like: source add NAME tagger"),
        (("add", "more", "tagger", tmp_path), "tagger"),
    ]:
        said = source(*words)
        assert said.code == 2
        assert why in said.err


def test_text_is_added_to_a_project_that_runs(seqmix_command, folder, notes, tmp_path):
    with open_project(folder) as running:
        label(running, "notes:1", [Mark(0, 1, "PER")])
        anna = find_annotator(running.store, "anna").id
        notes.write_text("Lena left Oslo.\nA new second line.\nAnother.\n", encoding="utf-8")
        more = tmp_path / "more.csv"
        more.write_text("body\nAnother.\nAda met Bo.\n", encoding="utf-8")

        ended = seqmix_command("project", folder, "text", "add", notes)
        table = seqmix_command("project", folder, "text", "add", more, "--read", "csv:column=body")

        assert ended.code == table.code == 0
        assert ended.out == (
            f"{folder}: 2 new; 0 of them set apart for the audit; "
            "1 skipped, since the project has them; 4 sentences to label\n"
        )
        assert table.out.startswith(
            f"{folder}: 1 new; 0 of them set apart for the audit; 1 skipped"
        )
        assert [s.id for s in read_sentences(running.store)][3:] == [
            "notes:2",
            "notes:3+2",
            "more:3",
        ]
        assert read_counts(running.store).sentences == 6
        asked = set()
        while (shown := next_sentence(running.store, anna)) is not None:
            asked.add(shown.sentence.id)
            save_answer(running.store, shown.sentence.id, anna, "label", version=shown.version)
        assert {"notes:2", "notes:3+2", "more:3"} <= asked
        assert running.store.read_note(TRAIN_NOW) is not None  # the trainer ranks them


def test_labels_in_added_text_are_kept_or_dropped_as_told(seqmix_command, folder, tmp_path):
    (tmp_path / "gold.conll").write_text("Zoe B-PER\nsang O\n\nParis B-LOC\nsleeps O\n")
    refused = seqmix_command("project", folder, "text", "add", tmp_path / "gold.conll")
    assert (refused.code, len(stored(folder))) == (2, 3)
    assert "the last word keep uses them as seed" in refused.err

    kept = seqmix_command("project", folder, "text", "add", tmp_path / "gold.conll", "keep")
    assert kept.code == 0
    with open_project(folder) as project:
        assert read_counts(project.store).seed == 2
        assert {s.tokens for s in read_labeled(project.store)} == {
            ("Zoe", "sang"),
            ("Paris", "sleeps"),
        }


def test_an_interrupted_addition_is_completed_by_adding_the_same_text_again(folder, tmp_path):
    def interrupted():
        for number in range(1200):
            if number == 700:
                raise KeyboardInterrupt
            yield Sentence.from_text(f"Number {number}", f"n:{number}")

    with open_project(folder) as project:
        with pytest.raises(KeyboardInterrupt):
            add_text(project, interrupted())
        whole = [Sentence.from_text(f"Number {number}", f"n:{number}") for number in range(1200)]
        added = add_text(project, whole)

        assert (added.new, added.duplicates) == (700, 500)
        assert read_counts(project.store).sentences == 1203
