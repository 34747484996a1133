#!/usr/bin/env python3
"""Mutation testing: do the tests of a room fail when a line of its code changes?

    python tools/mutate.py numerics                  30 mutants of the room, drawn by --seed
    python tools/mutate.py numerics --sample 100 --seed 7
    python tools/mutate.py numerics/floats.py --all  every mutant of one file

A mutant replaces one number, comparison, arithmetic or logical operator. Its tests run in a process of their own, in
which the module is imported changed; nothing is written. Those of the file of the same name run first, then those of
the room; a run that takes longer than three times the unchanged one counts as noticed. Processes that tests start do
not see the mutant. Mutants of `kernels` run uncompiled, by the tests marked `tiny`.

What survives is printed; `tools/mutants.tsv` explains survivors that change no behaviour. Exit code 1 if more than a
tenth of a sample is neither noticed nor explained, with --all if anything is. Needs `os.fork`.
"""

import argparse
import ast
import copy
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeGuard

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "buda_emu"
EXPLAINED = ROOT / "tools" / "mutants.tsv"
ENOUGH = 0.9  # of the mutants, noticed or explained

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
SECONDS = 30  # at least, for the tests of one mutant
OPTIONS = (
    "-x", "-p", "no:terminal", "--assert=plain", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider",
)  # fmt: skip

Site = Any  # a node with a line
Change = Callable[[Any], None]


@dataclass(frozen=True)
class Mutant:
    """A changed module: where, and what became what."""

    path: Path
    line: int
    change: str
    source: str
    tree: ast.Module

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.change}: {self.source}"

    @property
    def module(self) -> str:
        """Its name as it is imported."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def key(self) -> tuple[str, str, str]:
        """How `tools/mutants.tsv` names it: file, line as it stands, change."""
        return str(self.path.relative_to(PACKAGE)), self.source, self.change


def mutant(path: Path, number: int) -> Mutant:
    """One of the `count` mutants of a file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    node, change = _sites(tree)[number]
    line: int = node.lineno
    before = ast.unparse(node)
    change(node)
    ast.fix_missing_locations(tree)
    return Mutant(path, line, f"{before} -> {ast.unparse(node)}", text.splitlines()[line - 1].strip(), tree)


def count(path: Path) -> int:
    """How many mutants a file has."""
    return len(_sites(ast.parse(path.read_text(encoding="utf-8"))))


def sample(paths: Sequence[Path], most: int | None, seed: int) -> list[Mutant]:
    """Mutants of these files, at most `most`, in the order of the files."""
    every = [(path, number) for path in paths for number in range(count(path))]
    chosen = every if most is None or most >= len(every) else random.Random(seed).sample(every, most)
    return [mutant(path, number) for path, number in sorted(chosen)]


def _sites(tree: ast.AST) -> list[tuple[Site, Change]]:
    """Places that can be changed, and how; -1 is one number."""
    skipped = {id(inside) for part in _without_effect(tree) for inside in ast.walk(part)}
    skipped |= {id(node.operand) for node in ast.walk(tree) if _is_negative_number(node)}
    nodes = [node for node in ast.walk(tree) if id(node) not in skipped]
    return [(node, change) for node in nodes for change in _changes(node)]


def _without_effect(tree: ast.AST) -> Iterator[ast.AST]:
    """Types, decorators, texts and what an error says: no test has to hold them."""
    for node in ast.walk(tree):
        yield from getattr(node, "decorator_list", ())
        if isinstance(node, ast.JoinedStr | ast.Raise):
            yield node
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


@cache
def explained() -> dict[tuple[str, str, str], str]:
    """Survivors that change no behaviour a test could see, and why."""
    lines = EXPLAINED.read_text(encoding="utf-8").splitlines() if EXPLAINED.exists() else []
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {(path, source, change): why for path, source, change, why in rows}


class _Changed(MetaPathFinder, Loader):
    """Imports one module from a changed tree."""

    def __init__(self, name: str, code: CodeType) -> None:
        self._name = name
        self._code = code

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's own spec, with this as its loader."""
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is not None:
            spec.loader = self
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed code."""
        exec(self._code, vars(module))


def tests_of(path: Path) -> list[list[str]]:
    """Arguments of pytest, one run after the other till one notices: the file's own tests, then those of its room."""
    inside = path.relative_to(PACKAGE)
    room = inside.parts[0] if len(inside.parts) > 1 else ""
    if room == "kernels":
        return [["-m", "tiny", *(f"tests/{name}" for name in ("kernels", "ops", "numerics", "tensix"))]]
    own = ROOT / "tests" / inside.parent / f"test_{inside.name}"
    if not room:
        return [[str(own)]]
    folder = ROOT / "tests" / room
    return [[str(own)], [str(folder)]] if own.exists() else [[str(folder)]]


def noticed(tests: list[str], limit: float, mutant: Mutant | None) -> bool:
    """Whether tests fail, or take too long, in a child process."""
    child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(limit) + 1)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            code = _run(tests, mutant)
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return status != 0


def _run(tests: list[str], mutant: Mutant | None) -> int:
    import hypothesis
    import pytest

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # a smaller example is of no use here
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, phases=phases, max_examples=20, deadline=None
    )
    hypothesis.settings.load_profile("mutants")
    if mutant is not None:
        sys.meta_path.insert(0, _Changed(mutant.module, compile(mutant.tree, str(mutant.path), "exec")))
    return int(pytest.main([*OPTIONS, *tests]) != pytest.ExitCode.OK)


@dataclass(frozen=True)
class Outcome:
    """What became of a sample of mutants."""

    noticed: int
    explained: list[Mutant]
    survived: list[Mutant]

    @property
    def good(self) -> bool:
        """Enough of them are noticed or explained."""
        done = self.noticed + len(self.explained)
        return done >= ENOUGH * (done + len(self.survived))


def judge(
    mutants: Sequence[Mutant], seconds: float | None = None, tell: Callable[[str], object] = lambda _text: None
) -> Outcome:
    """Run the tests on each mutant, no longer than `seconds`. Raises RuntimeError where they fail without any."""
    begun, killed = time.monotonic(), 0
    known: list[Mutant] = []
    survived: list[Mutant] = []
    for number, one in enumerate(mutants):
        if seconds is not None and time.monotonic() - begun > seconds:
            tell(f"stopped after {number} of {len(mutants)}: {seconds:g} seconds are over")
            break
        if one.key in explained():
            known.append(one)
        elif any(noticed(tests, _limit(tuple(tests)), one) for tests in tests_of(one.path)):
            killed += 1
        else:
            survived.append(one)
            tell(str(one))
    return Outcome(killed, known, survived)


@cache
def _limit(tests: tuple[str, ...]) -> float:
    """Seconds that a mutant's run of these tests may take. Raises RuntimeError where they fail without any mutant."""
    start = time.monotonic()
    if noticed([*tests], 3600, None):
        raise RuntimeError(f"{' '.join(tests)}: the tests fail without any mutant")
    return SECONDS + 3 * (time.monotonic() - start)


def files(what: str) -> list[Path]:
    """The sources of a room, or one file: as they are named below the package."""
    path = PACKAGE / what
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def main() -> int:
    """Print what survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", help="a room of the package, or a file in one")
    parser.add_argument("--sample", type=int, default=30, help="how many mutants (30)")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--seed", type=int, default=0, help="which sample (0)")
    parser.add_argument("--seconds", type=float, help="stop after that time")
    args = parser.parse_args()
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if args.what.split("/")[0] == "kernels":
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    # What every child would load again; the package itself is imported by the child, with the mutant in it.
    for module in ("hypothesis.extra.numpy", "numba", "pytest"):
        import_module(module)
    drawn = sample(files(args.what), None if args.all else args.sample, args.seed)
    if not drawn:
        parser.error(f"{args.what}: no such room or file, or nothing to change in it")
    found = judge(drawn, args.seconds, lambda text: print(text, flush=True))
    known = f", {len(found.explained)} explained" if found.explained else ""
    print(f"{args.what}: {found.noticed} noticed{known}, {len(found.survived)} survived")
    return int(bool(found.survived) if args.all else not found.good)


if __name__ == "__main__":
    sys.exit(main())
