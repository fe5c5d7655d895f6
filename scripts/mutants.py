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
    """One small change to a module: where, the line before and after it, and the whole changed text."""

    module: str
    line: int
    before: str
    after: str
    code: str


def mutants(root: Path, module: str) -> dict[tuple[int, int], list[Mutant]]:
    """By place, every mutant of a module that is another program: annotations and signs in signatures are none of it."""
    places: dict[tuple[int, int], list[Mutant]] = {}
    code = (root / module).read_text(encoding="utf-8")
    tree, plain, lines = get_ast(code), _program(code), code.splitlines()
    for operator in (get_operator(name) for name in operator_names() if not get_operator(name).arguments()):
        positions = [start for node in ast_nodes(tree) for start, _ in operator().mutation_positions(node)]
        for occurrence, start in enumerate(positions):
            mutated = mutate_code(code, operator(), occurrence)
            if mutated is None or _program(mutated) in (None, plain):
                continue
            whole = mutated.splitlines()
            at = next(place for place, line in enumerate(lines) if whole[place : place + 1] != [line])
            after = "" if "RemoveDecorator" in operator.__name__ else whole[at].strip()
            before = lines[start[0] - 1] if not after else lines[at]
            places.setdefault(start, []).append(Mutant(module, start[0], before.strip(), after, mutated))
    return places


def draw(root: Path, module: str, sample: int, seed: int) -> list[Mutant]:
    """One mutant each of so many places of a module; the same for the same text and seed."""
    chance = random.Random(f"{seed} {module}")
    places = mutants(root, module)
    drawn = [chance.choice(places[start]) for start in sorted(places)]
    return sorted(chance.sample(drawn, min(sample, len(drawn))), key=lambda mutant: mutant.line)


def named(root: Path, module: str, wanted: set[tuple[str, str]]) -> list[Mutant]:
    """The mutants that change the one line into the other, as far as the module still has them."""
    every = [mutant for some in mutants(root, module).values() for mutant in some] if wanted else []
    return list({(mutant.before, mutant.after): mutant for mutant in every if (mutant.before, mutant.after) in wanted}.values())


def statement(root: Path, mutant: Mutant) -> range:
    """The lines of the innermost statement that is changed; only the head of one that holds others."""
    lines = range(mutant.line, mutant.line + 1)
    for node in ast.walk(ast.parse((root / mutant.module).read_text(encoding="utf-8"))):  # outer ones first
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            body = getattr(node, "body", None)
            head = range(node.lineno, max(node.lineno + 1, body[0].lineno) if body else (node.end_lineno or node.lineno) + 1)
            lines = head if mutant.line in head else lines
    return lines


def _program(code: str) -> str | None:
    """What a text means, without annotations and the signs that part a signature; None where Python refuses it or warns of it."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(sign, ast.Is | ast.IsNot) for sign in node.ops):
            literals = [part.value for part in (node.left, *node.comparators) if isinstance(part, ast.Constant)]
            if any(value is not None and not isinstance(value, bool) for value in literals):
                return None
        if isinstance(node, ast.arguments):
            node.args, node.posonlyargs, node.kwonlyargs = node.posonlyargs + node.args + node.kwonlyargs, [], []
        for field in ("annotation", "returns"):
            if hasattr(node, field):
                setattr(node, field, ast.Constant(None))
    return ast.dump(tree)
