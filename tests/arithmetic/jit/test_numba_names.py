"""docs/jit.md names everything of numba that is not in its manual: what may break with another version."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared_files import ROOT

ROOMS = ("arithmetic/jit/compiling", "arithmetic/jit", "arithmetic/kernels/intrinsics")
PAGE = (ROOT / "docs" / "jit.md").read_text(encoding="utf-8")
DOCUMENTED = {"numba", "numba.extending"}
OF_TUPLES = "_replace"  # a NamedTuple's, which is documented


def trees() -> Iterator[ast.Module]:
    for room in ROOMS:
        for path in sorted(Path(ROOT, "buda_emu", room).glob("*.py")):
            yield ast.parse(path.read_text(encoding="utf-8"))


def table(first_words: str) -> set[str]:
    """The first column of the table after a line that begins so."""
    after = PAGE.partition(f"\n{first_words}")[2]
    return set(re.findall(r"^\| `([^`]+)` \|", after.partition("\n\n|")[2].partition("\n\n")[0], re.MULTILINE))


def imported() -> set[str]:
    return {
        f"{node.module}.{name.name}"
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba")
        if node.module not in DOCUMENTED
        for name in node.names
    }


def underscored() -> set[str]:
    """Asked of objects other than `self`, and defined or asked by classes that are made from numba's."""
    found: set[str] = set()
    for tree in trees():
        numbas: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"):
                numbas |= {name.name for name in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                found.add(node.attr)
            if isinstance(node, ast.ClassDef) and {_root(base) for base in node.bases} & numbas:
                for inside in ast.walk(node):
                    if isinstance(inside, ast.FunctionDef):
                        found.add(inside.name)
                    elif isinstance(inside, ast.Attribute):
                        found.add(inside.attr)
                    elif isinstance(inside, ast.Assign):
                        found |= {target.id for target in inside.targets if isinstance(target, ast.Name)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")} - {OF_TUPLES}


def _root(base: ast.expr) -> str:
    while isinstance(base, ast.Attribute):
        base = base.value
    return base.id if isinstance(base, ast.Name) else ""


@pytest.mark.parametrize(
    ("words", "used"), [("The following names are imported", imported()), ("Attributes and methods", underscored())]
)
def test_the_page_names_what_is_used(words: str, used: set[str]) -> None:
    assert used - table(words) == set(), "not in docs/jit.md"
    assert table(words) - used == set(), "in docs/jit.md, but not used"
