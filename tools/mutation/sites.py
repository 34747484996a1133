"""What may be changed in a source, and a sample of it that stays the same while other lines change."""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "buda_emu"

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
    lines: range
    """The lines of its statement, of a loop or condition those of the head."""
    at_import: bool
    """Not inside of a function: it runs when the module is imported."""

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.change}: {self.source}"

    @property
    def module(self) -> str:
        """Its name as it is imported."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def compiles(self) -> bool:
        """It changes what makes kernels: none that was made before tells of it."""
        inside = self.path.relative_to(PACKAGE).parts
        return inside[0] == "jit" or inside[:2] == ("kernels", "intrinsics")

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
    lines, at_import = _place(tree, node)
    before = ast.unparse(node)
    change(node)
    ast.fix_missing_locations(tree)
    source = text.splitlines()[line - 1].strip()
    return Mutant(path, line, f"{before} -> {ast.unparse(node)}", source, tree, lines, at_import)


def count(path: Path) -> int:
    """How many mutants a file has."""
    return len(_sites(ast.parse(path.read_text(encoding="utf-8"))))


def sample(paths: Sequence[Path], most: int | None, seed: int) -> list[Mutant]:
    """Mutants of these files, at most `most`, in the order of the files. Whether a mutant is drawn depends on its line,
    as it stands: other lines that change leave most of a sample as it was."""
    every = [ranked for path in paths for ranked in _ranked(path, seed)]
    chosen = sorted(every)[: len(every) if most is None else most]
    return [mutant(path, number) for _, path, number in sorted(chosen, key=lambda item: item[1:])]


def at_lines(path: Path, sources: Collection[str]) -> Iterator[Mutant]:
    """The mutants of the lines that read so."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for number, (node, _) in enumerate(_sites(ast.parse(text))):
        if lines[node.lineno - 1].strip() in sources:
            yield mutant(path, number)


def _ranked(path: Path, seed: int) -> Iterator[tuple[bytes, Path, int]]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    alike = Counter[str]()
    for number, (node, _) in enumerate(_sites(ast.parse(text))):
        line = lines[node.lineno - 1].strip()
        name = f"{seed} {path.relative_to(ROOT).as_posix()} {alike[line]} {line}"
        alike[line] += 1
        yield hashlib.sha256(name.encode()).digest(), path, number


def _sites(tree: ast.AST) -> list[tuple[Site, Change]]:
    """Places that can be changed, and how; -1 is one number."""
    skipped = {id(inside) for part in _without_effect(tree) for inside in ast.walk(part)}
    skipped |= {id(node.operand) for node in ast.walk(tree) if _is_negative_number(node)}
    nodes = [node for node in ast.walk(tree) if id(node) not in skipped]
    return [(node, change) for node in nodes for change in _changes(node)]


def _place(tree: ast.Module, wanted: ast.AST) -> tuple[range, bool]:
    """The lines that run it, and whether that is at import."""

    def search(node: ast.AST, lines: range, at_import: bool) -> tuple[range, bool] | None:
        if node is wanted:
            return lines, at_import
        for field, value in ast.iter_fields(node):
            body = field == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    inside = _head(child) if isinstance(child, ast.stmt) else lines
                    if (found := search(child, inside, at_import and not body)) is not None:
                        return found
        return None

    found = search(tree, range(0), True)
    assert found is not None
    return found


def _head(statement: ast.stmt) -> range:
    inner = getattr(statement, "body", None)
    last = inner[0].lineno - 1 if isinstance(inner, list) else statement.end_lineno
    return range(statement.lineno, max(statement.lineno, last or 0) + 1)


def _without_effect(tree: ast.AST) -> Iterator[ast.AST]:
    """Types, decorators, texts, what an error says, and what cannot happen: no test has to hold them."""
    for node in ast.walk(tree):
        yield from getattr(node, "decorator_list", ())
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            yield node
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip
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
