"""The public names, and what stands in README and docs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import seqmix
from seqmix.app.cli import COMMANDS, load

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_public_names_are_these() -> None:
    assert sorted(seqmix.__all__) == [
        "ActiveLearner",
        "Entity",
        "OnnxTagger",
        "POLICIES",
        "Perplexity",
        "PolicySpec",
        "Pool",
        "Project",
        "ProjectStatus",
        "Replacement",
        "RoundRecord",
        "ScoreRange",
        "Sentence",
        "SeqMix",
        "SeqMixError",
        "Settings",
        "Span",
        "TagSet",
        "Tagger",
        "__version__",
        "load",
        "read",
        "sample",
        "score",
        "spans",
        "to_dataset",
        "to_pandas",
        "tokenize",
        "write",
    ]
    assert all(getattr(seqmix, name) is not None for name in seqmix.__all__)


def revealed(lines: list[str], folder: Path) -> list[str]:
    """The types that mypy gives expressions, by line; torch's and pandas's are not looked at."""
    code = "import seqmix\n" + "".join(f"reveal_type({line})\n" for line in lines)
    (folder / "snippet.py").write_text(code)
    heavy = ("datasets", "pandas", "scipy", "sqlalchemy", "tokenizers", "torch", "transformers")
    skipped = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in heavy)
    ours = (
        f"[mypy]\nmypy_path = {ROOT / 'src'}\n"
        "follow_imports = silent\nignore_missing_imports = True\n"
    )
    (folder / "mypy.ini").write_text(ours + skipped)
    words = [sys.executable, "-m", "mypy", "snippet.py"]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    types = re.findall(r'Revealed type is "(.*)"', ended.stdout)
    assert len(types) == len(lines), ended.stdout + ended.stderr
    return types


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all checks, so that the second finds what the first has read."""
    return tmp_path_factory.mktemp("checked")


def test_a_type_checker_knows_every_public_name_and_method(checked: Path) -> None:
    names = [name for name in seqmix.__all__ if name != "__version__"]
    methods = [
        f"seqmix.{name}.{member}"
        for name in names
        if inspect.isclass(cls := getattr(seqmix, name)) and not issubclass(cls, Exception)
        for member in dir(cls)
        if not member.startswith("_") or member == "__call__"
        if inspect.isroutine(getattr(cls, member)) or isinstance(getattr(cls, member), property)
    ]
    lines = [f"seqmix.{name}" for name in names] + methods

    types = dict(zip(lines, revealed(lines, checked), strict=True))

    assert len(methods) > 80
    arrays_and_json = r"tuple\[Any, \.\.\.\], numpy|(Mapping|dict)\[str, Any\]|\*\*arguments: Any"
    vague = {
        name
        for name, kind in types.items()
        if re.search(r"\bAny\b", re.sub(arrays_and_json, "numpy", kind))
    }
    others = {"seqmix.to_dataset", "seqmix.to_pandas", "seqmix.Tagger.tokenizer"}  # have no types
    assert vague == others | {"seqmix.Tagger.input_embeddings"}


def test_a_type_checker_knows_what_calls_return(checked: Path) -> None:
    calls = {
        "seqmix.Tagger().fit([], seed=0)": "Tagger",
        'seqmix.Tagger.load("ner")("Lena left")': "list[Entity]",
        'seqmix.Tagger()(["Lena left", ["Lena", "left"]])': "list[list[Entity]]",
        'seqmix.Tagger()(["Lena left"])[0][0].probability': "float | None",
        'next(seqmix.Tagger().predict(["Lena left"]))': "Sentence",
        "seqmix.Tagger().score([]).f1": "float",
        "seqmix.Tagger().labels": "tuple[str, ...]",
        'seqmix.Sentence.from_text("Lena left", entities=[(0, 4, "PER")])': "Sentence",
        'seqmix.Sentence("1", ()).entities()': "list[Entity]",
        'next(seqmix.read("train.conll"))': "Sentence",
        'seqmix.read({"train": "train.conll"})': "dict[str, list[Sentence]]",
        'seqmix.Project("names").status().left': "int",
        'next(seqmix.Project("names").labels())': "Sentence",
        'seqmix.Project("names").tagger()': "Tagger",
        'seqmix.POLICIES["nte"]': "PolicySpec",
    }

    types = [
        re.sub(r"\w+\.(?=\w)", "", kind).replace("builtins.", "")
        for kind in revealed(list(calls), checked)
    ]

    assert types == list(calls.values())


def test_reading_data_and_showing_help_load_no_torch() -> None:
    code = (
        "import sys, seqmix, seqmix.app.cli; seqmix.sample('gazette:dev'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


WITH_TORCH = {"Perplexity", "Project", "ProjectStatus", "SeqMix", "Tagger"}


def loaded(statement: str) -> set[str]:
    """The packages outside of the standard library that a statement imports."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    words = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path}; {code}"]
    printed = subprocess.check_output(words, text=True).split()
    return {*printed} - sys.stdlib_module_names - {"__main__"}


def test_importing_seqmix_imports_nothing_else() -> None:
    assert loaded("import seqmix") == {"seqmix"}


def test_names_that_need_no_torch_load_none() -> None:
    heavy = {"torch", "transformers", "scipy", "pandas", "tokenizers", "matplotlib", "fastapi"}
    light = set(seqmix.__all__) - WITH_TORCH
    assert not loaded("import seqmix; " + "; ".join(f"seqmix.{name}" for name in light)) & heavy


def test_every_command_and_option_named_in_the_docs_exists() -> None:
    names = [name for entries in COMMANDS.values() for name in entries]
    options = {
        name: {o for param in load(name).params for o in [*param.opts, *param.secondary_opts]}
        for name in names
    }
    lines = 0
    for page in PAGES:
        blocks = "\n".join(
            re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
        )
        for line in re.findall(r"^seqmix ([a-z].*)$", blocks, flags=re.M):
            name, *rest = line.split("#")[0].split()
            assert name in names, f"{page.name}: seqmix {name}"
            assert {word for word in rest if word.startswith("--")} <= options[name] | {"--help"}, (
                f"{page.name}: {line}"
            )
            lines += 1
    assert lines >= 5
