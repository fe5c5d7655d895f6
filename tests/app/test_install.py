"""What the plain install brings is what the plain commands need."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support import tiny

ROOT = Path(__file__).parents[2]
CORE = {
    "fastapi", "h11", "matplotlib", "numpy", "pydantic", "regex", "rich", "safetensors", "scipy",
    "sqlalchemy", "tokenizers", "torch", "transformers", "typer", "uvicorn",
}  # fmt: skip
EXTRAS = (
    "datasets",
    "gguf",
    "mlflow",
    "psycopg",
    "pyarrow",
    "ray",
    "spacy",
    "tensorboard",
)
BARE = (
    f"import sys; sys.modules |= dict.fromkeys({EXTRAS}); "
    "from seqmix.app.cli import run; sys.exit(run(sys.argv[1:]))"
)


def bare(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command where no extra is installed."""
    return subprocess.run(
        [sys.executable, "-c", BARE, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_core_dependencies_are_these() -> None:
    assert {re.match(r"[a-z0-9]+", one)[0] for one in project()["dependencies"]} == CORE
    assert not {"serve", "plots"} & project()["optional-dependencies"].keys()


def test_in_a_clone_without_its_packages_one_line_says_what_to_type() -> None:
    code = (
        "import sys; sys.modules['typer'] = None; "
        "import runpy; runpy.run_module('seqmix', run_name='__main__')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1 and ended.stderr.count("\n") == 1
    assert "needs the package typer" in ended.stderr and "make install" in ended.stderr


def test_every_extra_that_a_message_or_a_page_names_exists() -> None:
    known = project()["optional-dependencies"].keys()
    for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        named = re.findall(
            r'(?:MissingExtraError\(|\bextra\("[\w.]+", )"(\w+)"', text
        ) + re.findall(r"'seqmix\[(\w+)\]'", text)
        assert set(named) <= known, path
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert {
            name for names in re.findall(r"seqmix\[([\w,]+)\]", text) for name in names.split(",")
        } <= known, page
        assert set(re.findall(r"\bextra `(\w+)`", text)) <= known, page


def test_everything_imported_is_core_or_an_extra() -> None:
    extras = project()["optional-dependencies"].values()
    named = [*project()["dependencies"], *(one for extra in extras for one in extra)]
    given = {re.match(r"[\w.-]+", one)[0].lower() for one in named} | {
        "pandas",
        "starlette",
    }  # with datasets and FastAPI
    owners = packages_distributions()
    for path in (ROOT / "src").rglob("*.py"):
        for name in re.findall(
            r"^\s*(?:import|from) (\w+)", path.read_text(encoding="utf-8"), flags=re.M
        ):
            if name in owners and name not in sys.stdlib_module_names and name != "seqmix":
                assert {one.lower().replace("_", "-") for one in owners[name]} & given, (
                    f"{path.name} imports {name}"
                )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np

    from seqmix.tagger import Settings, Tagger

    folder = tmp_path_factory.mktemp("bare")
    tagger = Tagger(tiny.write_bert(folder / "encoder"), settings=Settings(steps=2), device="cpu")
    tagger.fit(tiny.toy(), np.random.default_rng(0)).save(folder / "model")
    return folder / "model"


def test_a_file_is_scored_without_ray_and_without_pyarrow(model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Lena left Oslo.\nAcme hired Omar.\nLena left Oslo.\n")

    ended = bare(
        "rank",
        tmp_path / "notes.txt",
        "--model",
        model,
        "--top",
        50,
        "--out",
        tmp_path / "top.jsonl",
    )

    assert ended.returncode == 0, ended.stderr
    assert len((tmp_path / "top.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "top.jsonl.parts").exists()


def test_a_store_in_postgresql_names_its_extra(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Lena left Oslo.\n")

    ended = bare(
        "init",
        tmp_path / "p",
        "--text",
        tmp_path / "notes.txt",
        "--tags",
        "PER",
        "--store",
        "postgresql://u@localhost/x",
    )

    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        2, "error: a store in PostgreSQL needs an optional package: pip install 'seqmix[postgres]'",
    )  # fmt: skip
