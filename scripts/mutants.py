"""The mutants of a module: what cosmic-ray makes of it, drawn by chance."""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names


@dataclass(frozen=True)
class Mutant:
    """One small change to a module: where, its line before and after, and the whole new text."""

    module: str
    line: int
    before: str
    after: str
    code: str


def draw(root: Path, module: str, sample: int, seed: int) -> list[Mutant]:
    """One mutant each of so many places of a module; the same for the same text and seed."""
    chance = random.Random(f"{seed} {module}")
    code = (root / module).read_text(encoding="utf-8")
    plain, places = _program(code), _places(code)
    drawn: list[Mutant] = []
    for start in chance.sample(sorted(places), len(places)):
        if len(drawn) < sample:
            ways = chance.sample(places[start], len(places[start]))
            drawn += next(
                (
                    [mutant]
                    for way in ways
                    if (mutant := _mutant(module, code, plain, start, *way)) is not None
                ),
                [],
            )
    return sorted(drawn, key=lambda mutant: mutant.line)


def named(root: Path, module: str, wanted: set[tuple[str, str]]) -> list[Mutant]:
    """Every mutant that changes the one line into the other, as far as the module still has any."""
    code = (root / module).read_text(encoding="utf-8")
    lines, plain = code.splitlines(), _program(code)
    places = {
        start: ways
        for start, ways in _places(code).items()
        if lines[start[0] - 1].strip() in {before for before, _ in wanted}
    }
    every = [
        mutant
        for start, ways in places.items()
        for way in ways
        if (mutant := _mutant(module, code, plain, start, *way)) is not None
    ]
    return [mutant for mutant in every if (mutant.before, mutant.after) in wanted]


def _places(code: str) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """By line and column, what can be done there: the operator and which occurrence it is."""
    places: dict[tuple[int, int], list[tuple[str, int]]] = {}
    nodes = list(ast_nodes(get_ast(code)))
    for name in operator_names():
        operator = get_operator(name)
        if not operator.arguments():
            for occurrence, start in enumerate(
                start for node in nodes for start, _ in operator().mutation_positions(node)
            ):
                places.setdefault(start, []).append((name, occurrence))
    return places


def _mutant(
    module: str, code: str, plain: str | None, start: tuple[int, int], name: str, occurrence: int
) -> Mutant | None:
    """The mutant, if it is another program; annotations and signs in signatures do not count."""
    mutated = mutate_code(code, get_operator(name)(), occurrence)
    if mutated is None or _program(mutated) in (None, plain):
        return None
    before, after = (
        code.splitlines()[start[0] - 1],
        "" if "Decorator" in name else mutated.splitlines()[start[0] - 1],
    )
    return Mutant(module, start[0], before.strip(), after.strip(), mutated)


def statement(root: Path, mutant: Mutant) -> range:
    """The lines of the innermost changed statement; only the head of one that holds others."""
    lines = range(mutant.line, mutant.line + 1)
    for node in ast.walk(
        ast.parse((root / mutant.module).read_text(encoding="utf-8"))
    ):  # outer ones first
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            body = getattr(node, "body", None)
            head = range(
                node.lineno,
                max(node.lineno + 1, body[0].lineno)
                if body
                else (node.end_lineno or node.lineno) + 1,
            )
            lines = head if mutant.line in head else lines
    return lines


def _program(code: str) -> str | None:
    """What a text means, without annotations and the signs that part a signature.

    None where Python refuses it or warns of it.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(
            isinstance(sign, ast.Is | ast.IsNot) for sign in node.ops
        ):
            literals = [
                part.value
                for part in (node.left, *node.comparators)
                if isinstance(part, ast.Constant)
            ]
            if any(value is not None and not isinstance(value, bool) for value in literals):
                return None
        if isinstance(node, ast.arguments):
            node.args, node.posonlyargs, node.kwonlyargs = (
                node.posonlyargs + node.args + node.kwonlyargs,
                [],
                [],
            )
        for field in ("annotation", "returns"):
            if hasattr(node, field):
                setattr(node, field, ast.Constant(None))
    return ast.dump(tree)
