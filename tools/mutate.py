"""Mutation testing, small: does a test fail when a constant or an operator of the code changes?

    python tools/mutate.py buda_emu/verify/comparison/pcc.py tests/verify/comparison/test_pcc.py

Each mutant of the file replaces one number, comparison, arithmetic or logical operator. The tests run in a forked
process in which the mutant stands in place of the module; nothing is written. What survives is printed; exit code 1 if
anything does. Needs `os.fork`.
"""

import argparse
import ast
import copy
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Pow: ast.Mult,
}  # fmt: skip
TYPE_NAMES = {"Floats", "Flags", "Array", "None"}  # a `|` between these is a union of types
SECONDS = 30  # for the tests of one mutant; one that takes longer counts as noticed
OPTIONS = (
    "-x", "-p", "no:terminal", "--assert=plain", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider",
)  # fmt: skip

Site = Any  # a node with a line
Change = Callable[[Any], None]


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
    """Every mutant of a module's text, line by line."""
    lines = text.splitlines()
    places = [node.lineno for node, _ in _sites(ast.parse(text))]
    order = sorted(range(len(places)), key=places.__getitem__)
    for number in order:
        tree = ast.parse(text)
        node, change = _sites(tree)[number]
        line: int = node.lineno
        before = ast.unparse(node)
        change(node)
        ast.fix_missing_locations(tree)
        yield Mutant(line, f"{before} -> {ast.unparse(node)}", tree, lines[line - 1].strip())


def _sites(tree: ast.AST) -> list[tuple[Site, Change]]:
    """Places that can be changed, and how. Texts, annotations and decorators are left alone; -1 is one number."""
    skipped = {id(inside) for part in _not_run(tree) for inside in ast.walk(part)}
    skipped |= {id(node.operand) for node in ast.walk(tree) if _is_negative_number(node)}
    nodes = [node for node in ast.walk(tree) if id(node) not in skipped]
    return [(node, change) for node in nodes for change in _changes(node)]


def _not_run(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        yield from getattr(node, "decorator_list", ())
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                yield getattr(node, field)


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare():
            for position, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    yield _comparison(position, other)
        case ast.BinOp() if type(node.op) in OPERATORS and not _is_text_or_type(node):
            yield _operator
        case ast.AugAssign() if type(node.op) in OPERATORS:
            yield _operator
        case ast.BoolOp():
            yield _operator
        case ast.UnaryOp() if _is_negative_number(node):
            yield _one_less
        case ast.UnaryOp():
            yield _twice
        case ast.Constant(value=bool()):
            yield _negated
        case ast.Constant(value=int() | float()):
            yield _larger
        case _:
            pass


def _is_negative_number(node: ast.AST) -> TypeGuard[ast.UnaryOp]:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def _is_text_or_type(node: ast.BinOp) -> bool:
    inside = list(ast.walk(node))
    if any(isinstance(item, ast.Constant) and isinstance(item.value, str) for item in inside):
        return True
    names = {item.id for item in inside if isinstance(item, ast.Name)}
    return isinstance(node.op, ast.BitOr) and bool(names & TYPE_NAMES)


def _comparison(position: int, other: type[ast.cmpop]) -> Change:
    def change(node: ast.Compare) -> None:
        node.ops[position] = other()

    return change


def _operator(node: Any) -> None:
    node.op = OPERATORS[type(node.op)]()


def _twice(node: ast.UnaryOp) -> None:
    node.operand = ast.UnaryOp(node.op, copy.deepcopy(node.operand))


def _one_less(node: ast.UnaryOp) -> None:
    operand: Any = node.operand
    operand.value -= 1


def _negated(node: ast.Constant) -> None:
    node.value = not node.value


def _larger(node: ast.Constant) -> None:
    value: Any = node.value
    node.value = value + 1 if isinstance(value, int) else value * 1.5 + (value == 0)


def survivors(path: Path, tests: list[str], progress: Callable[[str], object] = lambda _text: None) -> list[Mutant]:
    """Mutants of `path`, relative to the working directory, that no test notices. Raises RuntimeError where the tests
    cannot be collected or fail without any mutant. The tests are collected in this process, once."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import hypothesis
    import pytest

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # a smaller example is of no use here
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, phases=phases, max_examples=20, deadline=None
    )
    hypothesis.settings.load_profile("mutants")
    loop = _Loop(path, progress)
    pytest.main([*OPTIONS, *tests], plugins=[loop])
    if loop.found is None:
        raise RuntimeError(f"{' '.join(tests)}: nothing collected, or it fails without any mutant")
    return loop.found


class _Loop:
    """A pytest plugin: runs the collected tests once for each mutant."""

    def __init__(self, path: Path, progress: Callable[[str], object]) -> None:
        self.found: list[Mutant] | None = None
        self._module = importlib.import_module(".".join(path.with_suffix("").parts))
        self._path = path
        self._progress = progress

    def pytest_runtestloop(self, session: Any) -> bool:
        """In place of pytest's own, which the children call."""
        if not session.items or self._noticed(None, session):
            return True
        everything = list(mutants(self._path.read_text(encoding="utf-8")))
        self.found = []
        for number, mutant in enumerate(everything):
            self._progress(f"{number + 1}/{len(everything)}")
            if not self._noticed(mutant, session):
                self.found.append(mutant)
        return True

    def _noticed(self, mutant: Mutant | None, session: Any) -> bool:
        """Whether the tests fail, in a child process."""
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(BaseException):
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(SECONDS)
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
                if mutant is not None:
                    _install(mutant, self._module)
                code = _run(session)
            os._exit(code)
        _, status = os.waitpid(child, 0)
        return status != 0


def _run(session: Any) -> int:
    from _pytest.main import pytest_runtestloop

    pytest_runtestloop(session)
    return int(session.testsfailed > 0)


def _install(mutant: Mutant, module: ModuleType) -> None:
    """Define everything of the module anew, also where other modules have it by name."""
    before = dict(vars(module))
    exec(compile(mutant.tree, str(module.__file__), "exec"), vars(module))
    changed = {
        id(value): vars(module)[name]
        for name, value in before.items()
        if callable(value) and value.__module__ == module.__name__
    }
    for other in list(sys.modules.values()):
        for name, value in list(vars(other).items()):
            if id(value) in changed:
                setattr(other, name, changed[id(value)])


def main() -> int:
    """Print what survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="of the package, relative to the project's root")
    parser.add_argument("tests", nargs="+")
    args = parser.parse_args()
    sys.path.insert(0, str(Path.cwd()))
    terminal = os.dup(2)  # pytest holds the streams while it runs
    found = survivors(args.file, args.tests, lambda text: os.write(terminal, f"\r{text}".encode()))
    os.write(terminal, b"\n")
    for mutant in found:
        print(f"{args.file}:{mutant}")
    print(f"{len(found)} survived")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
