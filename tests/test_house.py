"""Folders, files and functions stay small, and values are named after what they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "seqmix"
FILES = sorted(SRC.rglob("*.py"))
VAGUE = {"own", "found", "made", "told", "given"}
ALLOWED = {"scoring.py:found"}  # conlleval's word, and a key of what `evaluate --json` prints


def names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES} - {SRC / "data/formats"}))
def test_a_folder_has_at_most_15_modules(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= 15


def test_a_file_has_at_most_300_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}

    assert {path.name: n for path, n in lengths.items() if n > 300} == {}


def test_a_function_has_at_most_50_lines() -> None:
    long = [
        f"{path.relative_to(SRC)}:{node.lineno} {node.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > 50
    ]

    assert long == []


def test_no_value_has_a_vague_name() -> None:
    vague = {
        f"{path.name}:{name}"
        for path in FILES
        for name in VAGUE & set(names(ast.parse(path.read_text(encoding="utf-8"))))
    }

    assert vague <= ALLOWED


@cache
def defined(path: Path) -> frozenset[str]:
    """Return the names that a module assigns, or defines as classes and functions."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return frozenset(stored | {n.name for n in nodes if isinstance(n, kinds)})


def test_a_name_is_imported_from_the_module_that_defines_it() -> None:
    """A package may offer what its modules define; a module offers nothing of other modules."""
    elsewhere = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.module}.{alias.name}"
        for folder in ("src", "tests", "scripts", "bench", "fuzz", "experiments", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seqmix.")
        if (module := ROOT / "src" / f"{node.module.replace('.', '/')}.py").is_file()
        for alias in node.names
        if alias.name not in defined(module)
    ]

    assert elsewhere == []
