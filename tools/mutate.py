"""Mutation testing, small: does a test fail when a constant or an operator of the code changes?

    python tools/mutate.py buda_emu/verify/pcc.py tests/verify/test_pcc.py

Each mutant of the file replaces one number, comparison, arithmetic or logical operator. The tests run in a forked
process that imports the mutant in place of the module; nothing is written. What survives is printed; exit code 1 if
anything does. Needs `os.fork`.
"""

import argparse
import ast
import copy
import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Pow: ast.Mult,
}  # fmt: skip
SECONDS = 120


@dataclass(frozen=True)
class Mutant:
    """A changed module: where, and what became what."""

    line: int
    change: str
    tree: ast.Module
    source: str

    def __str__(self) -> str:
        return f"{self.line}: {self.change}: {self.source}"


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a module's text, in the order of the text."""
    lines = text.splitlines()
    count = len(list(_sites(ast.parse(text))))
    for number in range(count):
        tree = ast.parse(text)
        node, change = list(_sites(tree))[number]
        before = ast.unparse(node)
        change(node)
        ast.fix_missing_locations(tree)
        yield Mutant(node.lineno, f"{before} -> {ast.unparse(node)}", tree, lines[node.lineno - 1].strip())


def _sites(tree: ast.AST) -> Iterator[tuple[ast.expr, object]]:
    """Places that can be changed, and how; texts, annotations and indices into shapes are left alone."""
    decorators = {id(inside) for node in ast.walk(tree) for item in getattr(node, "decorator_list", ())
                  for inside in ast.walk(item)}  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in decorators:
            continue
        match node:
            case ast.Compare():
                for position, operator in enumerate(node.ops):
                    if type(operator) in COMPARISONS:
                        yield node, _comparison(position)
            case ast.BinOp() if type(node.op) in OPERATORS and not _is_text(node):
                yield node, _operator
            case ast.BoolOp():
                yield node, _operator
            case ast.UnaryOp(op=ast.Not()):
                yield node, _without_not
            case ast.Constant(value=bool()):
                yield node, _negated
            case ast.Constant(value=int() | float()):
                yield node, _larger


def _is_text(node: ast.BinOp) -> bool:
    inside = list(ast.walk(node))
    names = {item.id for item in inside if isinstance(item, ast.Name)}
    texts = any(isinstance(item, ast.Constant) and isinstance(item.value, str) for item in inside)
    return texts or bool(names & {"Floats", "Flags", "Array"})  # a union of types


def _comparison(position: int):
    def change(node: ast.Compare) -> None:
        node.ops[position] = COMPARISONS[type(node.ops[position])]()

    return change


def _operator(node) -> None:
    node.op = OPERATORS[type(node.op)]()


def _without_not(node: ast.UnaryOp) -> None:
    node.operand = ast.UnaryOp(ast.Not(), copy.deepcopy(node.operand))


def _negated(node: ast.Constant) -> None:
    node.value = not node.value


def _larger(node: ast.Constant) -> None:
    node.value = node.value + 1 if isinstance(node.value, int) else node.value * 1.5 + (node.value == 0)


def survivors(path: Path, tests: list[str], progress=lambda _text: None) -> list[Mutant]:
    """Mutants that no test notices."""
    import numpy  # noqa: F401 - the forked processes share what is imported here
    import pytest

    name = ".".join(path.with_suffix("").parts)
    found = []
    if _noticed(None, name, path, tests, pytest) is not False:
        raise SystemExit("the tests fail without any mutant")
    everything = list(mutants(path.read_text(encoding="utf-8")))
    for number, mutant in enumerate(everything):
        progress(f"{number + 1}/{len(everything)}")
        if not _noticed(mutant, name, path, tests, pytest):
            found.append(mutant)
    return found


def _noticed(mutant: Mutant | None, name: str, path: Path, tests: list[str], pytest) -> bool:
    child = os.fork()
    if child == 0:
        code = 3
        with suppress(BaseException):
            signal.alarm(SECONDS)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            if mutant is not None:
                _install(mutant, name, path)
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
            code = int(pytest.main([*options, *tests]))
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return status != 0


def _install(mutant: Mutant, name: str, path: Path) -> None:
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(mutant.tree, str(path), "exec"), module.__dict__)
    package, _, last = name.rpartition(".")
    setattr(importlib.import_module(package), last, module)


def main() -> int:
    """Print what survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="of the package, relative to the project's root")
    parser.add_argument("tests", nargs="+")
    args = parser.parse_args()
    found = survivors(args.file, args.tests, lambda text: print(f"\r{text}", end="", file=sys.stderr, flush=True))
    print(file=sys.stderr)
    for mutant in found:
        print(f"{args.file}:{mutant}")
    print(f"{len(found)} survived")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
