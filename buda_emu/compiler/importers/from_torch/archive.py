"""A file of torch.export.save before torch reads it: torch runs code that pickles and expressions in it hold, and a
stranger's model must not."""

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch

from buda_emu.compiler.graph.names import shown_name
from buda_emu.errors import HostError

_OF_EXPRESSIONS: Final = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Constant, ast.Name, ast.Call, ast.Load,
    ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.keyword,
)  # fmt: skip
"""What sizes are written with; no attributes and items."""
_TEXT: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*|-?[0-9.]+(e-?[0-9]+)?")
"""The name of a size, or a number."""
_FUNCTIONS: Final = {
    "Max", "Min", "Mod", "PythonMod", "FloorDiv", "CleanDiv", "CeilDiv", "IntTrueDiv", "FloatTrueDiv", "CeilToInt",
    "FloorToInt", "TruncToInt", "RoundToInt", "RoundDecimal", "ToFloat", "Identity", "PowByNatural", "FloatPow", "Pow",
    "Integer", "Rational", "Float", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "Abs", "ceiling", "floor",
    "Where", "ModularIndexing", "Piecewise", "IsNonOverlappingAndDenseIndicator", "sqrt", "log2", "Symbol", "Add",
    "Mul", "Dummy", "Relational",
    "Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan", "ExprCondPair", "Tuple",
    "BitwiseFn_bitwise_and", "BitwiseFn_bitwise_or", "BitwiseFn_bitwise_xor", "LShift", "RShift",
}  # fmt: skip
"""Of sizes, as torch and sympy print them."""


def check_archive(path: Path) -> None:
    """Raises HostError for a file that is not there or no archive, and for one with what torch would run as code:
    Python objects as pickles (those of tensors alone torch reads without running any), or expressions that call
    anything but functions of sizes."""
    if not path.exists():
        raise HostError(f"compile: {path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                _check_member(path, name, archive.read(name) if name.endswith((".pt", ".json")) else b"")
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RecursionError) as error:
        raise HostError(f"compile: {path} is not a file of torch.export.save: {error}") from None


def _check_member(path: Path, name: str, data: bytes) -> None:
    if name.endswith(".pt") and data and not _of_tensors(data):
        raise _refused(path, name, "holds Python objects as pickles")
    for key, value in _pairs(json.loads(data)) if name.endswith(".json") and data else ():
        if key == "use_pickle" and value:
            raise _refused(path, name, "has tensors as pickles of Python objects")
        if key == "path_name" and str(value).startswith(("custom_obj_", "opaque_obj_")):
            raise _refused(path, name, "has constants that are Python objects")
        if key == "expr_str" and not _of_sizes(str(value)):
            raise _refused(path, name, f"has the expression {shown_name(str(value))}")


def _refused(path: Path, name: str, what: str) -> HostError:
    return HostError(
        f"compile: {path}: {shown_name(name)} {what}, with which reading it may run any code: "
        "where you trust it, compile what torch.export.load gives"
    )


def _of_tensors(data: bytes) -> bool:
    """Whether torch reads it with `weights_only`, which runs no code; where it does not, torch.export.load goes on to
    read it without."""
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception:  # noqa: BLE001 - whatever it is, it would be read the other way
        return False
    return True


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """All fields of a JSON document, however deep."""
    waiting = [value]
    while waiting:
        item: Any = waiting.pop()
        if isinstance(item, dict):
            yield from item.items()
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _plain(value: object) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and _TEXT.fullmatch(value) is not None)


def _of_sizes(text: str) -> bool:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, _OF_EXPRESSIONS) or (isinstance(node, ast.Constant) and not _plain(node.value)):
            return False
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS):
            return False
    return True
