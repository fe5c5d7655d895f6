import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqmix
from seqmix.data import files
from seqmix.data.files import (
    clear_leftovers,
    lines,
    make_folder,
    replacing,
    version_problem,
    write_text,
)
from seqmix.data.overwriting import FolderKind
from seqmix.errors import DataError

ANY = FolderKind("a test", (), ("*", "*/*"))


class HaltError(Exception):
    pass


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_file_appears_when_the_block_ends_well(tmp_path):
    with replacing(tmp_path / "a.txt") as beside:
        beside.write_text("new")
        assert not (tmp_path / "a.txt").exists()

    assert (tmp_path / "a.txt").read_text() == "new"
    assert everything_in(tmp_path) == ["a.txt"]


def test_folders_on_the_way_are_made(tmp_path):
    write_text(tmp_path / "runs" / "demo" / "a.txt", "new")

    assert (tmp_path / "runs" / "demo" / "a.txt").read_text() == "new"


@pytest.mark.parametrize("folder", [None, ANY])
@pytest.mark.parametrize("place", ["out", "runs/demo/out"])
def test_nothing_is_left_behind_when_the_block_raises(tmp_path, place, folder):
    with pytest.raises(HaltError), replacing(tmp_path / place, folder) as beside:
        (beside / "weights" if folder else beside).write_text("half")
        raise HaltError

    assert everything_in(tmp_path) == []


def test_a_folder_that_was_there_before_stays_when_the_block_raises(tmp_path):
    (tmp_path / "old").mkdir()

    with pytest.raises(HaltError), replacing(tmp_path / "old" / "new" / "a.txt"):
        raise HaltError

    assert everything_in(tmp_path) == ["old"]


def test_a_folder_on_the_way_that_got_other_files_meanwhile_is_kept(tmp_path):
    with pytest.raises(HaltError), replacing(tmp_path / "runs" / "demo" / "a.txt"):
        (tmp_path / "runs" / "other.txt").write_text("mine")
        raise HaltError

    assert everything_in(tmp_path) == ["runs", "runs/other.txt"]


def test_an_existing_file_survives_a_failed_rewrite(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    with pytest.raises(HaltError), replacing(path) as beside:
        beside.write_text("half")
        assert path.read_text() == "old"
        raise HaltError

    assert path.read_text() == "old"
    assert everything_in(tmp_path) == ["a.txt"]


def test_an_existing_file_is_replaced(tmp_path):
    write_text(tmp_path / "a.txt", "old and longer")
    write_text(tmp_path / "a.txt", "new")

    assert (tmp_path / "a.txt").read_text() == "new"


def test_a_folder_appears_whole_and_replaces_the_one_before(tmp_path):
    for content, own in (("old", "old.json"), ("new", "new.json")):
        with replacing(tmp_path / "model", folder=ANY) as beside:
            (beside / "deep").mkdir()
            (beside / "deep" / own).write_text(content)

    assert everything_in(tmp_path) == ["model", "model/deep", "model/deep/new.json"]


def test_an_existing_folder_survives_a_failed_rewrite(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("old")

    with pytest.raises(HaltError), replacing(tmp_path / "model", folder=ANY) as beside:
        (beside / "weights").write_text("half")
        raise HaltError

    assert (tmp_path / "model" / "weights").read_text() == "old"
    assert everything_in(tmp_path) == ["model", "model/weights"]


def test_a_linked_folder_is_replaced_and_what_it_pointed_to_is_not_touched(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "weights").write_text("old")
    (tmp_path / "latest").symlink_to("first")

    with replacing(tmp_path / "latest", folder=ANY) as beside:
        (beside / "weights").write_text("new")

    assert (tmp_path / "latest" / "weights").read_text() == "new"
    assert (tmp_path / "first" / "weights").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "latest"]


def test_a_folder_and_the_one_it_replaces_change_places_in_one_step(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("old")
    renames = []
    monkeypatch.setattr(os, "rename", lambda *names: renames.append(names))

    with replacing(tmp_path / "model", folder=ANY) as beside:
        (beside / "weights").write_text("new")

    assert (tmp_path / "model" / "weights").read_text() == "new"
    assert renames == [], "between two renames there would be no model"
    assert everything_in(tmp_path) == ["model", "model/weights"]


def test_two_folders_named_from_here_change_places_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        Path(name).mkdir()
        (Path(name) / name).write_text(name)

    files.swap(Path("a"), Path("b"))

    assert everything_in(tmp_path) == ["a", "a/b", "b", "b/a"]


def test_where_a_file_system_cannot_swap_the_old_folder_steps_aside(tmp_path, monkeypatch):
    def cannot(*_):
        raise OSError(errno.EINVAL, "cannot")

    monkeypatch.setattr(files, "swap", cannot)
    for text in ("old", "new"):
        with replacing(tmp_path / "model", folder=ANY) as beside:
            (beside / "weights").write_text(text)

    assert (tmp_path / "model" / "weights").read_text() == "new"
    assert everything_in(tmp_path) == ["model", "model/weights"]


def test_a_dead_writers_folder_is_cleared_by_the_next_one_and_a_living_ones_is_not(tmp_path):
    dead, living, other = (
        tmp_path / name for name in (".model.1.part", ".model.2.part", ".model.md.3.part")
    )
    for folder in (dead, living, other):
        folder.mkdir()
    handle = os.open(living, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)

    with replacing(tmp_path / "model", folder=ANY):
        pass

    os.close(handle)
    assert not dead.exists() and living.exists() and other.exists()


def test_leftovers_are_cleared_at_any_depth_and_nothing_else_is(tmp_path):
    kept = [".hidden", "a.part", ".a.part", "rounds/.b.txt"]
    for name in (*kept, ".a.txt.12.part", "rounds/.model.12.old/weights"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    clear_leftovers(tmp_path)

    assert everything_in(tmp_path) == sorted([*kept, "rounds"])


def test_the_names_of_new_folders_are_synced_too(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: (
            synced.append(str(Path(f"/proc/self/fd/{handle}").readlink())),
            real(handle),
        ),
    )

    result = make_folder(tmp_path / "runs" / "a" / "rounds")

    assert result == [
        tmp_path / "runs" / "a" / "rounds",
        tmp_path / "runs" / "a",
        tmp_path / "runs",
    ]
    assert {str(tmp_path), str(tmp_path / "runs"), str(tmp_path / "runs" / "a")} <= set(synced)
    assert make_folder(tmp_path / "runs") == []


def test_everything_in_a_new_folder_is_synced(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: (
            synced.append(Path(f"/proc/self/fd/{handle}").readlink().name),
            real(handle),
        ),
    )

    with replacing(tmp_path / "model", folder=ANY) as beside:
        (beside / "inner").mkdir()
        (beside / "inner" / "weights").write_text("1")
        (beside / "config").write_text("2")

    assert {"weights", "inner", "config", beside.name, tmp_path.name} <= set(synced)


def test_what_a_killed_process_left_behind_does_no_harm(tmp_path):
    (tmp_path / f".a.txt.{os.getpid()}.part").mkdir()  # the same process number, from another day
    write_text(tmp_path / "a.txt", "new")

    assert everything_in(tmp_path) == ["a.txt"]


def test_an_existing_file_survives_the_death_of_its_writer(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    script = """
import os, sys
from pathlib import Path
from seqmix.data.files import replacing
with replacing(Path(sys.argv[1])) as beside:
    beside.write_text("half")
    os._exit(9)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(seqmix.__file__).parents[1])}
    died = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.txt")], env=environment, check=False
    )

    assert died.returncode == 9
    assert (tmp_path / "a.txt").read_text() == "old"


@pytest.mark.parametrize("folder", [None, ANY])
@pytest.mark.parametrize(
    "place",
    ["file/a", "file/deep/a", "new/" + "x" * 250, "x" * 300 + "/a"],
    ids=lambda place: place[:8],
)
def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path, place, folder):
    (tmp_path / "file").write_text("in the way")

    with (
        pytest.raises(DataError, match="cannot write here") as caught,
        replacing(tmp_path / place, folder),
    ):
        pytest.fail("the block must not begin")

    assert str(caught.value).startswith(str(tmp_path / place))
    assert everything_in(tmp_path) == ["file"]


def test_a_full_disk_is_an_error_that_names_the_place_and_leaves_nothing(tmp_path):
    with (
        pytest.raises(DataError, match=r"a\.txt: cannot write here: No space left on device"),
        replacing(tmp_path / "a.txt") as beside,
    ):
        beside.symlink_to("/dev/full")
        beside.write_text("too much")

    assert everything_in(tmp_path) == []


def test_a_block_that_writes_nothing_is_an_error(tmp_path):
    with pytest.raises(DataError, match="cannot write here"), replacing(tmp_path / "a.txt"):
        pass

    assert everything_in(tmp_path) == []


def test_a_folder_in_place_of_a_file_and_a_file_in_place_of_a_folder_are_refused_and_kept(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")

    with pytest.raises(DataError, match="folder: cannot write here"):
        write_text(tmp_path / "folder", "new")
    with (
        pytest.raises(DataError, match="a file has the name of the folder"),
        replacing(tmp_path / "file", folder=ANY),
    ):
        pytest.fail("the block must not begin")

    assert everything_in(tmp_path) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_without_a_name_is_refused(path):
    with pytest.raises(DataError, match="expected the name"), replacing(Path(path)):
        pytest.fail("the block must not begin")


def test_text_is_written_as_utf8_with_plain_line_ends(tmp_path):
    write_text(tmp_path / "a.txt", "Ångström\n€\n")

    assert (tmp_path / "a.txt").read_bytes() == "Ångström\n€\n".encode()


def test_lines_come_with_their_numbers_and_without_their_ends(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\r\n\ntwo\nthree")

    assert list(lines(tmp_path / "a.txt")) == [(1, "one"), (2, ""), (3, "two"), (4, "three")]


def test_a_byte_order_mark_is_passed_over_in_the_first_line_only(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n")

    assert list(lines(tmp_path / "a.txt")) == [(1, "one"), (2, "\ufefftwo")]


@given(
    content=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r")))
)
def test_only_line_ends_cut_lines(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    content = [
        f"{number}{line}" for number, line in enumerate(content)
    ]  # no byte order mark in front
    path.write_bytes("".join(f"{line}\n" for line in content).encode())

    assert [line for _, line in lines(path)] == content


@pytest.mark.parametrize(
    "separator", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\r"], ids=ascii
)
def test_separators_inside_real_tokens_do_not_cut_a_line(tmp_path, separator):
    (tmp_path / "a.txt").write_bytes(f"one{separator}two\tO\n".encode())

    assert list(lines(tmp_path / "a.txt")) == [(1, f"one{separator}two\tO")]


def test_a_broken_byte_is_an_error_with_its_place_and_what_stands_there(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\nM\xfcnchen\n")

    with pytest.raises(DataError) as caught:
        list(lines(tmp_path / "a.txt"))

    assert (caught.value.path, caught.value.line) == (tmp_path / "a.txt", 2)
    assert "UTF-8" in str(caught.value)
    assert "byte 2" in str(caught.value)
    assert "xfcnchen" in str(caught.value)


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(DataError, match="cannot read") as caught:
            list(lines(path))
        assert caught.value.path == path


@pytest.mark.parametrize("supported", [1, 2, 5])
def test_the_format_we_know_is_opened(supported):
    assert version_problem(Path("run"), supported, supported) is None


@pytest.mark.parametrize("version", [None, "1", 1.0, True, 0, -1, [1]])
def test_what_is_no_number_of_a_format_is_called_damaged(version):
    assert f"its format_version is {version!r}" in version_problem(Path("run"), version, 1)


def test_a_newer_format_says_to_upgrade_and_an_older_one_says_what_is_read():
    assert version_problem(Path("run"), 3, 2) == (
        "run has format 3, written by a newer seqmix; "
        "this one reads formats up to 2: upgrade seqmix"
    )
    assert version_problem(Path("run"), 1, 2).endswith(
        "written by an older seqmix; this one reads format 2"
    )
    assert "newer" in version_problem(Path("run"), 9, 2) and "older" in version_problem(
        Path("run"), 1, 9
    )
