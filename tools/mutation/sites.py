"""What may be changed in a source, and a sample of it that stays the same while other lines change."""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
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
    """A changed module, with the place and the text of the change."""

    path: Path
    line: int
    change: str
    source: str
    tree: ast.Module
    lines: range
    """The lines of the statement; of a loop or condition, the lines of its head."""
    at_import: bool
    """True outside of functions: the line runs when the module is imported."""

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.change}: {self.source}"

    @property
    def module(self) -> str:
        """The name by which the module is imported."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def compiles(self) -> bool:
        """True if it changes code that makes kernels: kernels made before do not show the change."""
        inside = self.path.relative_to(PACKAGE).parts
        return inside[0] == "jit" or inside[:2] == ("kernels", "intrinsics")

    @property
    def key(self) -> tuple[str, str, str]:
        """The key in `tools/mutants.tsv`: file, line as it stands, change."""
        return str(self.path.relative_to(PACKAGE)), self.source, self.change


def mutant(path: Path, number: int) -> Mutant:
    """Return one of the `count` mutants of a file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    node, change = _sites(tree)[number]
    line: int = node.lineno
    lines, at_import = _place(tree, node)
    before = ast.unparse(node)
    change(node)
    ast.fix_missing_locations(tree)
    source = text.splitlines()[line - 1].strip()
    return Mutant(
        path=path,
        line=line,
        change=f"{before} -> {ast.unparse(node)}",
        source=source,
        tree=tree,
        lines=lines,
        at_import=at_import,
    )


def count(path: Path) -> int:
    """Return the number of mutants of a file."""
    return len(_sites(ast.parse(path.read_text(encoding="utf-8"))))


def sample(paths: Sequence[Path], limit: int | None, seed: int) -> list[Mutant]:
    """Return mutants of these files, at most `limit`, in the order of the files. Whether a mutant is drawn depends on
    the text of its line, so changes of other lines leave most of a sample as it was."""
    ranked = sorted(chain.from_iterable(_rank_sites(path, seed) for path in paths))
    chosen = ranked if limit is None else ranked[:limit]
    return [mutant(path, number) for _, path, number in sorted(chosen, key=lambda entry: entry[1:])]


def at_lines(path: Path, sources: Collection[str]) -> Iterator[Mutant]:
    """Yield the mutants of the lines with these texts."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for number, (node, _) in enumerate(_sites(ast.parse(text))):
        if lines[node.lineno - 1].strip() in sources:
            yield mutant(path, number)


def _rank_sites(path: Path, seed: int) -> Iterator[tuple[bytes, Path, int]]:
    """Yield rank, file and number of the mutants of a file; the rank is a hash of seed, file and line."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    alike = Counter[str]()
    for number, (node, _) in enumerate(_sites(ast.parse(text))):
        line = lines[node.lineno - 1].strip()
        name = f"{seed} {path.relative_to(ROOT).as_posix()} {alike[line]} {line}"
        alike[line] += 1
        yield hashlib.sha256(name.encode()).digest(), path, number


def _sites(tree: ast.AST) -> list[tuple[Site, Change]]:
    """Return the places that can be changed, and their changes; -1 counts as one number."""
    skipped: set[int] = set()
    for part in _without_effect(tree):
        skipped.update(map(id, ast.walk(part)))
    skipped |= {id(node.operand) for node in ast.walk(tree) if _is_negative_number(node)}
    sites: list[tuple[Site, Change]] = []
    for node in ast.walk(tree):
        if id(node) not in skipped:
            sites += [(node, change) for change in _changes(node)]
    return sites


def _place(tree: ast.Module, site: ast.AST) -> tuple[range, bool]:
    """Return the lines of the statement around a site, and whether it runs at import."""

    def search(node: ast.AST, lines: range, at_import: bool) -> tuple[range, bool] | None:
        if node is site:
            return lines, at_import
        for field, value in ast.iter_fields(node):
            body = field == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    inside = _head(child) if isinstance(child, ast.stmt) else lines
                    if (place := search(child, inside, at_import and not body)) is not None:
                        return place
        return None

    place = search(tree, range(0), True)
    assert place is not None
    return place


def _head(statement: ast.stmt) -> range:
    """Return the lines of a statement, without its body."""
    inner = getattr(statement, "body", None)
    last = inner[0].lineno - 1 if isinstance(inner, list) else statement.end_lineno
    return range(statement.lineno, max(statement.lineno, last or 0) + 1)


def _without_effect(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that no test has to check: types, decorators, texts, messages of errors, and what cannot
    happen."""
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
    """Yield the changes of a node."""
    match node:
        case ast.Compare():
            for position, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    yield _comparison(position, other)
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp() if _has_other_operator(node):
            yield _operator
        case ast.UnaryOp() if _is_negative_number(node):
            yield _one_less
        case ast.UnaryOp():
            yield _twice
        case ast.Constant(value=bool()):
            yield _negate
        case ast.Constant(value=int() | float()):
            yield _larger
        case _:
            pass


def _has_other_operator(node: ast.BinOp | ast.AugAssign | ast.BoolOp) -> bool:
    """Return whether another operator can take the place of a node's."""
    if isinstance(node, ast.BinOp) and _is_text_or_type(node):
        return False
    return type(node.op) in OPERATORS


def _is_negative_number(node: ast.AST) -> TypeGuard[ast.UnaryOp]:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def _is_text_or_type(node: ast.BinOp) -> bool:
    """Return whether an operator joins texts, or types to a union."""
    inside = list(ast.walk(node))
    if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in inside):
        return True
    names = {part.id for part in inside if isinstance(part, ast.Name)}
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


def _negate(node: ast.Constant) -> None:
    node.value = not node.value


def _larger(node: ast.Constant) -> None:
    value: Any = node.value
    node.value = value + 1 if isinstance(value, int) else value * 1.5 + (value == 0)
