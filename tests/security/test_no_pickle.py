"""Nothing in the project unpickles, evaluates text or calls a shell.

Every file of code is read as a tree, not as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "scripts", "bench", "examples")
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "zipfile",
    "tarfile",
}
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
LOADERS = {
    "torch.load",
    "torch.hub.load",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "os.system",
    "os.popen",
    "pandas.read_pickle",
}


def breaches(code: str) -> Iterator[str]:
    """What in a file could run somebody else's bytes."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
            )
            yield from (
                f"{node.lineno}: imports {name}"
                for name in names
                if name.partition(".")[0] in MODULES
            )
        if isinstance(node, ast.Call):
            yield from (f"{node.lineno}: {what}" for what in _call(node))


def _call(node: ast.Call) -> Iterator[str]:
    name = ast.unparse(node.func)
    if name in CALLS or name in LOADERS:
        yield f"calls {name}"
    for word in node.keywords:
        value = getattr(word.value, "value", None)
        if word.arg in ("allow_pickle", "trust_remote_code", "shell") and value is not False:
            yield f"{name} with {word.arg}"
        if word.arg in ("weights_only", "use_safetensors") and value is False:
            yield f"{name} without {word.arg}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_of_the_project_could_run_what_it_reads(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))

    assert files
    assert [
        f"{file.relative_to(ROOT)}:{breach}"
        for file in files
        for breach in breaches(file.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from joblib import load",
        "import os, dill as d",
        "from zipfile import ZipFile",
        "torch.load(path)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text)",
        "eval(text)",
        "exec(text)",
        "subprocess.run(text, shell=True)",
        "AutoModel.from_pretrained(name, trust_remote_code=given)",
        "AutoModel.from_pretrained(name, use_safetensors=False)",
    ],
)
def test_each_of_these_would_be_found(code: str) -> None:
    assert len(list(breaches(code))) == 1


@pytest.mark.parametrize(
    "code",
    ["model.eval()", "re.compile(x)", "np.load(path, allow_pickle=False)", "json.loads(text)"],
)
def test_these_are_fine(code: str) -> None:
    assert list(breaches(code)) == []
