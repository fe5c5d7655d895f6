"""The package that is built contains what it should, and works where nothing else is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from packaging.metadata import Metadata

import seqmix
from tests.support.environments import install_alone, pip
from walk_wheel import STEPS, build, tags, walk

ROOT = Path(__file__).parents[1]
IN_THE_PACKAGE = {  # what is not Python, by kind
    "py.typed",
    *(f"app/presets/{name}.toml" for name in ("conll03", "demo", "few-labels", "genia")),
    *(f"data/samples/gazette/{name}.conll" for name in ("dev", "reserve", "test", "train")),
    "data/samples/gazette/GUIDELINES.md",
    "serve/web/page/index.html",
    "serve/web/page/annotate.js",
    "serve/web/page/style.css",
    "starter/files/encoder.int8.safetensors",
    "starter/files/encoder.json",
    "starter/files/lm.int8.safetensors",
    "starter/files/lm.json",
    "starter/files/tokenizer.json",
    "starter/files/types.safetensors",
    "serve/web/page/sources.html",
}
OPTIONAL = "cassis datasets gguf httpx onnx onnxruntime psycopg pyarrow pytest ray spacy wandb"
pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The sdist and the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SOURCE_DATE_EPOCH", "1750000000")
        yield build(ROOT, folder, "sdist"), build(ROOT, folder, "wheel")


def repository() -> set[str]:
    """The files of the clone that git does not ignore."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip("not a git clone")
    return {name for name in ended.stdout.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_has_the_package_and_nothing_else(dist: tuple[Path, Path]) -> None:
    names = set(zipfile.ZipFile(dist[1]).namelist())
    package = {name.removeprefix("src/") for name in repository() if name.startswith("src/")}
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}

    assert names == package | {f"seqmix-{seqmix.__version__}.dist-info/{name}" for name in about}
    assert {f"seqmix/{name}" for name in IN_THE_PACKAGE} <= names


def test_the_sizes_in_the_docs_are_these(dist: tuple[Path, Path]) -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    sizes = [int(size) for size in re.findall(r"\| (\d+) MB \|", page)]

    assert sizes == [round(path.stat().st_size / 1e6) for path in reversed(dist)]


def test_every_extra_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert {*re.findall(r"^\| `(\w+)` \|", page, re.M)} == project["optional-dependencies"].keys()


def test_the_sdist_is_the_repository_without_tests_and_results(dist: tuple[Path, Path]) -> None:
    with tarfile.open(dist[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}

    kept = {name for name in repository() if not name.startswith(("tests/", "results/"))}
    assert names == kept | {"PKG-INFO"}


def test_the_sdist_builds_the_same_bytes_again(dist: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.unpack_archive(dist[0], tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for path in source.rglob("*"):
        path.touch()

    for first, kind in zip(dist, ("sdist", "wheel"), strict=True):
        second = build(source, tmp_path / kind, kind)
        assert second.name == first.name
        assert second.read_bytes() == first.read_bytes(), kind


def test_the_metadata_says_what_is_true(dist: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(dist[1]) as archive:
        folder = f"seqmix-{seqmix.__version__}.dist-info"
        about = Metadata.from_email(archive.read(f"{folder}/METADATA"), validate=True)
        scripts = archive.read(f"{folder}/entry_points.txt").decode()
        assert archive.read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (about.name, str(about.version)) == ("seqmix", seqmix.__version__)
    assert about.license_expression == project["license"]
    assert set(about.provides_extra or ()) == project["optional-dependencies"].keys()
    assert not about.project_urls  # until there is an address that answers
    for name, target in project["scripts"].items():
        assert f"{name} = {target}" in scripts


def test_the_readme_has_no_link_that_an_index_cannot_follow(dist: tuple[Path, Path]) -> None:
    with tarfile.open(dist[0]) as archive:
        member = archive.extractfile(f"seqmix-{seqmix.__version__}/PKG-INFO")
        assert member is not None
        about = Metadata.from_email(member.read(), validate=True)

    assert about.description_content_type == "text/markdown"
    page = MarkdownIt("gfm-like", {"linkify": False}).render(about.description or "")
    assert "<h1>seqmix</h1>" in page and "<table>" in page and "<pre>" in page
    assert not re.findall(r'(?:href|src)="(?!https?://)[^"]*"', page)


def test_the_wheel_works_where_nothing_else_is_installed(
    dist: tuple[Path, Path], tmp_path: Path
) -> None:
    """In an environment with the dependencies of the wheel and no extra, outside of a clone."""
    python = install_alone(dist[1], tmp_path / "environment")
    assert "No broken requirements found" in pip(python, "check")
    code = (
        "import json, seqmix; from importlib.util import find_spec as f; "
        f"print(json.dumps([seqmix.__file__, [n for n in '{OPTIONAL}'.split() if f(n)]]))"
    )
    (tmp_path / "here").mkdir()
    printed = subprocess.check_output([python, "-I", "-c", code], cwd=tmp_path / "here")
    path, optional = json.loads(printed)
    assert Path(path).is_relative_to(tmp_path / "environment") and not optional

    _, cpu = walk(python, tmp_path / "here", limit=60)

    assert len(STEPS) == 4
    assert ("Oslo", "B-LOC") in tags(tmp_path / "here")
    assert cpu < 60
