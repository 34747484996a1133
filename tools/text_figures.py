"""Measure how the text of the project reads: names, docstrings and folded expressions, by package and folder.

    python tools/text_figures.py                  print the figures of every package beside the aims
    python tools/text_figures.py --worst FIGURE   print the places that count for one figure, file by file
    python tools/text_figures.py --lower          write limits that are lower than those of tools/text_limits.tsv

Packages inside `buda_emu` have their own names; `benchmarks`, `examples` and `tools` are folders beside it.
`tests/test_text.py` holds each of them to its limits. They are a floor: a figure may fall, and must not rise.
"""

import argparse
import ast
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "buda_emu"
FOLDERS: Final = ("benchmarks", "examples", "tools")
"""Folders beside the package whose text is measured, too."""
LIMITS: Final = ROOT / "tools" / "text_limits.tsv"

VAGUE_NAMES: Final = frozenset({
    "found", "own", "mine", "made", "kept", "told", "given", "one", "each", "way", "ways", "said", "whole", "both",
    "known", "now", "here", "where", "more", "most", "less", "them", "item", "wanted", "likely", "taken", "it",
    "this", "that", "these", "those", "what", "which", "who", "thing", "things", "stuff", "there", "one_", "ones",
    "its",
})  # fmt: skip
"""Names of parameters and locals that do not tell what they hold."""
_PARTICIPLE: Final = re.compile(
    r"(ed|told|found|made|kept|taken|given|known|drawn|said|shown|held|sent|begun|written)$"
)
_CONTINUATION: Final = re.compile(
    r"^(Of|What|Whether|Where|Who|Whose|How|The same|Those|These|As|Likewise|All that|Such|That)\b"
)
_MOST_COMPLEXITY: Final = 10
_MOST_POSITIONAL: Final = 4

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Figure:
    """A count of places, as a rate per `per` units of `base`, or as it is where `base` is empty. `aim` is the rate that
    the package shall reach."""

    name: str
    base: str
    per: int
    aim: float


FIGURES: Final = (
    Figure("vague names", "functions", 100, 3.0),
    Figure("participles", "functions", 100, 1.0),
    Figure("complex functions", "functions", 100, 3.0),
    Figure("continuing docstrings", "docstrings", 100, 0.5),
    Figure("conditional expressions", "code lines", 1000, 15.0),
    Figure("parallel assignments", "code lines", 1000, 2.0),
    Figure("nested comprehensions", "code lines", 1000, 1.0),
    Figure("positional records", "", 1, 5.0),
)


@dataclass
class Measurement:
    """Counts of one package: `bases` by unit, and `places` by figure and file."""

    bases: Counter[str] = field(default_factory=Counter[str])
    places: dict[str, Counter[str]] = field(default_factory=lambda: {figure.name: Counter() for figure in FIGURES})

    def rate(self, figure: Figure) -> float:
        """Return the rate of a figure, rounded up to a tenth."""
        count = self.places[figure.name].total()
        if not figure.base:
            return float(count)
        return math.ceil(10 * figure.per * count / max(1, self.bases[figure.base])) / 10

    def limit(self, figure: Figure) -> float:
        """Return the limit that a figure is held to after a rewriting: its rate, rounded up to a half, so that code
        which goes elsewhere does not make the rate of what stays exceed it."""
        return math.ceil(2 * self.rate(figure)) / 2


def complexity(nodes: Iterable[ast.AST]) -> int:
    """Return the number of decisions in a function plus one, from all nodes of its tree; functions inside of it count
    as its parts."""
    decisions = 1
    for node in nodes:
        if isinstance(
            node, ast.If | ast.For | ast.While | ast.IfExp | ast.ExceptHandler | ast.comprehension | ast.match_case
        ):
            decisions += 1
        elif isinstance(node, ast.BoolOp):
            decisions += len(node.values) - 1
    return decisions


def _local_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _is_property(function: _Function) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def _figures_of_function(function: _Function) -> Iterator[str]:
    nodes = list(ast.walk(function))
    if not VAGUE_NAMES.isdisjoint(_local_names(nodes)):
        yield "vague names"
    if _PARTICIPLE.search(function.name) and not _is_property(function):
        yield "participles"
    if complexity(nodes) > _MOST_COMPLEXITY:
        yield "complex functions"


def _builds_positional_record(call: ast.Call) -> bool:
    """Return whether a call of a name that begins with a capital letter passes too many positional arguments."""
    return isinstance(call.func, ast.Name) and call.func.id[:1].isupper() and len(call.args) > _MOST_POSITIONAL


def _figures_of_expression(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.IfExp():
            yield "conditional expressions"
        case ast.Assign(targets=[ast.Tuple(), *_], value=ast.Tuple()):
            yield "parallel assignments"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() if len(node.generators) > 1:
            yield "nested comprehensions"
        case ast.Call() if _builds_positional_record(node):
            yield "positional records"
        case _:
            pass


def _docstring_lines(node: ast.Module | ast.ClassDef | _Function) -> range:
    literal = node.body[0]
    return range(literal.lineno, (literal.end_lineno or literal.lineno) + 1)


def _count_code_lines(text: str, docstring_lines: set[int]) -> int:
    count = 0
    for number, line in enumerate(text.split("\n"), 1):
        statement = line.strip()
        if statement and number not in docstring_lines and not statement.startswith("#"):
            count += 1
    return count


def measure_file(path: Path, measurement: Measurement) -> None:
    """Add the counts of one file."""
    text = path.read_text()
    name = path.relative_to(ROOT).as_posix()
    docstring_lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        figures = list(_figures_of_expression(node))
        if isinstance(node, _Function):
            measurement.bases["functions"] += 1
            figures += _figures_of_function(node)
        if isinstance(node, ast.Module | ast.ClassDef | _Function):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                measurement.bases["docstrings"] += 1
                docstring_lines.update(_docstring_lines(node))
                if _CONTINUATION.match(docstring) and not isinstance(node, ast.Module):
                    figures.append("continuing docstrings")
        for figure in figures:
            measurement.places[figure][name] += 1
    measurement.bases["code lines"] += _count_code_lines(text, docstring_lines)


def measure_packages() -> dict[str, Measurement]:
    """Return the counts of each package inside `buda_emu`, by name, and of the folders beside it; files at the top of
    `buda_emu` count as `.`."""
    packages: dict[str, Measurement] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        name = parts[0] if len(parts) > 1 else "."
        measure_file(path, packages.setdefault(name, Measurement()))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            measure_file(path, packages.setdefault(folder, Measurement()))
    return packages


def read_limits() -> dict[tuple[str, str], float]:
    """Return the limits by package and figure."""
    lines = [line.split("\t") for line in LIMITS.read_text().splitlines() if not line.startswith("#")]
    return {(package, figure): float(limit) for package, figure, limit in lines}


def exceeded_limits(packages: Mapping[str, Measurement], limits: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Yield a message for each figure above its limit. A package without limits is held to the aims."""
    for package, measurement in packages.items():
        for figure in FIGURES:
            limit = limits.get((package, figure.name), figure.aim)
            rate = measurement.rate(figure)
            if rate > limit:
                worst = ", ".join(name for name, _ in measurement.places[figure.name].most_common(3))
                yield f"{package}: {figure.name} rise from {limit} to {rate}; most in {worst}"


def _write_lower_limits(packages: Mapping[str, Measurement]) -> None:
    before = read_limits() if LIMITS.exists() else {}
    rows = ["# Highest rate of each figure by package: tools/text_figures.py --lower. Tabs: package, figure, limit."]
    for package, measurement in packages.items():
        for figure in FIGURES:
            limit = measurement.limit(figure)
            rows.append(f"{package}\t{figure.name}\t{min(limit, before.get((package, figure.name), limit))}")
    LIMITS.write_text("\n".join(rows) + "\n")


def _print_table(packages: Mapping[str, Measurement]) -> None:
    print(f"{'':24}" + "".join(f"{name[:11]:>12}" for name in packages) + f"{'aim':>8}")
    for figure in FIGURES:
        rates = "".join(f"{measurement.rate(figure):12.1f}" for measurement in packages.values())
        print(f"{figure.name:24}{rates}{figure.aim:8.1f}")


def _print_places(packages: Iterable[Measurement], figure: str) -> None:
    places: Counter[str] = Counter()
    for measurement in packages:
        places += measurement.places[figure]
    for name, count in places.most_common():
        print(f"{count:5}  {name}")


def main() -> int:
    """Run the command; its options are described above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worst", metavar="FIGURE", choices=[figure.name for figure in FIGURES])
    parser.add_argument("--lower", action="store_true")
    args = parser.parse_args()
    packages = measure_packages()
    if args.lower:
        _write_lower_limits(packages)
    elif args.worst:
        _print_places(packages.values(), args.worst)
    else:
        _print_table(packages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
