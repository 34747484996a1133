"""Check of a file of torch.export.save before torch reads it. torch runs code from pickles, libraries and text in such
a file, which a model from an untrusted source must not do.

torch does not get the file but a new archive of the checked members: torch finds members by other rules than the check,
and the file may change in between.
"""

import ast
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, cast

import torch

from buda_emu.compiler.graph.builder import printable_name
from buda_emu.support.errors import HostError

_OF_EXPRESSIONS: Final = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Constant, ast.Name, ast.Call, ast.Load,
    ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.keyword,
)  # fmt: skip
"""Syntax that expressions of sizes consist of; attributes and subscripts are not among it."""
_TEXT: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*|-?[0-9.]+(e-?[0-9]+)?")
"""Text in an expression that is the name of a size, or a number."""
_FUNCTIONS: Final = {
    "Max", "Min", "Mod", "PythonMod", "FloorDiv", "CleanDiv", "CeilDiv", "IntTrueDiv", "FloatTrueDiv", "CeilToInt",
    "FloorToInt", "TruncToInt", "RoundToInt", "RoundDecimal", "ToFloat", "Identity", "PowByNatural", "FloatPow", "Pow",
    "Integer", "Rational", "Float", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "Abs", "ceiling", "floor",
    "Where", "ModularIndexing", "Piecewise", "IsNonOverlappingAndDenseIndicator", "sqrt", "log2", "Symbol", "Add",
    "Mul", "Dummy", "Relational",
    "Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan", "ExprCondPair", "Tuple",
    "BitwiseFn_bitwise_and", "BitwiseFn_bitwise_or", "BitwiseFn_bitwise_xor", "LShift", "RShift",
}  # fmt: skip
"""Functions of sizes as torch and sympy print them."""
_POWERS: Final = {"PowByNatural", "FloatPow", "Pow", "LShift", "RShift"}
_LARGEST_EXPONENT: Final = 63  # 2^63 does not fit 64 bits with a sign
_MOST_DIGITS: Final = 21
"""Limit for the digits of a number. This and the limit for exponents suffice for all sizes of 64 bits."""

_OF_TENSORS: Final = re.compile(
    r"torch\.ops\.(?:aten|prims|quantized_decomposed|torchvision)\.(?P<operator>[A-Za-z_]\w*)\.[A-Za-z_]\w*", re.ASCII
)
OF_FILES: Final = frozenset({"from_file", "save"})
"""Operators of these libraries that read or write files."""
_OF_HIGHER_ORDER: Final = frozenset({
    "associative_scan", "auto_functionalized", "auto_functionalized_v2", "cond", "flex_attention", "foreach_map",
    "hints_wrapper", "invoke_subgraph", "map_impl", "out_dtype", "scan", "strict_mode", "tag_activation_checkpoint",
    "while_loop", "with_effects", "wrap", "wrap_activation_checkpoint", "wrap_with_autocast",
    "wrap_with_set_grad_enabled",
})  # fmt: skip
"""Operators that run graphs of the program itself; others of `torch.ops.higher_order` run kernels and delegates."""
_OF_NUMBERS: Final = re.compile(
    r"_operator\.(?:eq|ne|le|ge|lt|gt|neg|pos|abs|not_|mul|add|sub|floordiv|truediv|mod|pow|and_|or_|xor|lshift|rshift"
    r"|getitem)|math\.[a-z0-9]+|torch\._?sym_[a-z0-9]+"
)
"""Functions of sizes, and access to elements of a tuple."""
_OF_VMAP: Final = re.compile(
    r"torch\._functorch\.predispatch\."
    r"(?:lazy_load_decompositions|_(?:add|remove)_batch_dim|_vmap_(?:in|de)crement_nesting)"
)


def _as_list(value: Any) -> list[Any]:
    """Return a list as it is, and any other value as a list of one element."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def find_fault(document: Any) -> str:
    """Return a description of the content of a document that may run code when torch reads it, or ""."""
    for key, value in _iterate_fields(document):
        if key == "use_pickle" and value:
            return "has tensors as pickles of Python objects"
        if key == "path_name" and str(value).startswith(("custom_obj_", "opaque_obj_")):
            return "has constants that are Python objects"
        rule = _RULES.get(key)
        if rule is None:
            continue
        noun, is_harmless = rule
        texts = _as_list(value)
        harmful = next((text for text in texts if isinstance(text, str) and not is_harmless(text)), None)
        if harmful is not None:
            return f"has the {noun} {printable_name(harmful)}"
    return ""


def find_name_fault(document: Mapping[str, Any]) -> str:
    """Return a description of the first name of a tensor that may run code, in a document of weights or constants, or
    ""."""
    names = document.get("config")
    if isinstance(names, dict):
        bad = next((name for name in names if not _is_path(name)), None)
    else:
        bad = None
    if bad is None:
        return ""
    return f"has the name {printable_name(bad)}"


def _iterate_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield key and value of all fields of a JSON document at any depth."""
    waiting = [value]
    while waiting:
        part: Any = waiting.pop()
        if isinstance(part, dict):
            yield from part.items()
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _is_plain(value: object) -> bool:
    """Return whether a constant in an expression of sizes is harmless: a number, or a text that is the name of a size
    or a number."""
    return isinstance(value, (int, float)) or (isinstance(value, str) and _TEXT.fullmatch(value) is not None)


def _is_size(text: str) -> bool:
    """Return whether a text is an expression that calls nothing but functions of sizes, with small numbers and powers
    that are not nested."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, _OF_EXPRESSIONS) or (isinstance(node, ast.Constant) and not _is_plain(node.value)):
            return False
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS):
            return False
    return all(map(_is_small, ast.walk(tree))) and _power_depth(tree.body) <= 1


def _is_small(node: ast.AST) -> bool:
    """Return whether a syntax node is neither a number with more digits than a size has nor a power with a large or
    computed exponent."""
    if isinstance(node, ast.Constant):
        return _count_digits(node.value) <= _MOST_DIGITS
    exponent = _find_exponent(node)
    return exponent is None or _is_small_exponent(exponent)


def _count_digits(value: Any) -> int:
    """Return an upper bound for the digits of a number, or of a text that is one, on either side of the point; 0 for a
    name."""
    if isinstance(value, int):
        return value.bit_length() // 3  # Python writes no number of thousands of digits
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return 0
    if number.is_finite():
        return abs(number.adjusted()) + 1
    return _MOST_DIGITS + 1


def _find_exponent(node: ast.AST) -> ast.AST | None:
    """Return the exponent of a power or the distance of a shift, or None. A power without an exponent gives the node
    itself, which no check accepts."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift, ast.RShift)):
        return node.right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _POWERS:
        if len(node.args) > 1:
            return node.args[1]
        return node
    return None


def _is_small_exponent(node: ast.AST) -> bool:
    """Return whether an exponent consists of one or two small numbers, whose product bounds the result of one operation
    on them, as in Rational(1, 2) or -1."""
    numbers = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    plain = all(isinstance(number, (int, float)) and abs(number) <= _LARGEST_EXPONENT for number in numbers)
    operators = (ast.UnaryOp, ast.unaryop, ast.Constant, ast.Name, ast.Load, ast.Call)
    return plain and 0 < len(numbers) <= 2 and all(isinstance(part, operators) for part in ast.walk(node))


def _power_depth(node: ast.AST) -> int:
    """Return how deeply powers and shifts are nested in an expression, since nested exponents multiply."""
    inner = max(map(_power_depth, ast.iter_child_nodes(node)), default=0)
    return inner + (_find_exponent(node) is not None)


def _is_operator(text: str) -> bool:
    """Return whether a text names a function of tensors, sizes or the program's own graphs. torch would accept any
    attribute of its modules."""
    tensors = _OF_TENSORS.fullmatch(text)
    if tensors is not None:
        return tensors["operator"] not in OF_FILES
    if text.removeprefix("torch.ops.higher_order.") in _OF_HIGHER_ORDER:
        return text.startswith("torch.ops.higher_order.")
    return _OF_NUMBERS.fullmatch(text) is not None or _OF_VMAP.fullmatch(text) is not None


def _is_name(text: str) -> bool:
    """Return whether a text is empty or an identifier, since torch writes it into source code unchanged. Some arguments
    have no name."""
    return text == "" or text.isidentifier()


def _is_path(text: str) -> bool:
    """Return whether a text is printable and has no quote or backslash, since torch writes it into source code between
    double quotes."""
    return text.isprintable() and not set(text) & set('"\\')


def _is_tree(text: str) -> bool:
    """Return whether the description of nested inputs or outputs names no class that torch would import, and only
    identifiers as keywords."""
    try:
        protocol, tree = json.loads(text)
        contexts = [_parse_context(value) for key, value in _iterate_fields([protocol, tree]) if key == "context"]
        children = tree["children_spec"]
        if len(children) == 2:
            keywords = _parse_context(children[1]["context"])
        else:
            keywords = None
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    fields = [*_iterate_fields(tree), *_iterate_fields(contexts)]
    imports = any(
        key in ("__enum__", "fqn") or (key == "default_factory_module" and value != "builtins") for key, value in fields
    )
    return not imports and _are_keywords(children, keywords)


def _parse_context(value: Any) -> Any:
    """Parse JSON inside of JSON; return other text, the name of a class, unchanged."""
    try:
        if isinstance(value, str):
            return json.loads(value)
        return value
    except ValueError:
        return value


def _are_keywords(children: list[Any], keywords: Any) -> bool:
    """Return whether the keys of keyword arguments are identifiers. The check applies to a tuple of positional
    arguments followed by a dictionary."""
    kinds = [child["type"] for child in children]
    if kinds != ["builtins.tuple", "builtins.dict"] or not isinstance(keywords, list):
        return True
    return all(isinstance(name, str) and name.isidentifier() for name in keywords)


_Rule = tuple[str, Callable[[str], bool]]
_RULES: Final[Mapping[str, _Rule]] = {
    "expr_str": ("expression", _is_size),
    **dict.fromkeys(("target", "as_operator"), ("operator", _is_operator)),
    **dict.fromkeys(("name", "as_name", "user_input_name", "forward_arg_names"), ("name", _is_name)),
    **dict.fromkeys(("parameter_name", "buffer_name", "tensor_constant_name", "fqn"), ("name", _is_path)),
    **dict.fromkeys(("in_spec", "out_spec"), ("tree", _is_tree)),
}
"""The fields whose text torch interprets, each with a noun for messages and a test for harmless text."""


_Members = Mapping[str, str]
"""Patterns of member names, each with the content: "text" of the format itself, "json", "names" (JSON by names of
tensors), "tensors" (a pickle of torch.save), "bytes" (of one tensor), or "unread", which torch does not get."""
_NUMBER: Final = "(?:0|[1-9][0-9]*)"
_OF_ARCHIVES: Final[_Members] = {
    r"archive_format|archive_version|byteorder|\.data/version": "text",
    r"models/model\.json": "json",
    r"data/weights/model_weights_config\.json|data/constants/model_constants_config\.json": "names",
    rf"data/weights/weight_{_NUMBER}|data/constants/tensor_{_NUMBER}": "bytes",
    r"data/sample_inputs/model\.pt|data/(?:weights|constants)/model\.pt": "tensors",
    rf"\.data/serialization_id|data/constants/(?:custom|opaque)_obj_{_NUMBER}|extra/.+": "unread",
}
"""Members since torch 2.8, all in one folder; the pickled tensors (`weights/model.pt`) belong to its first versions."""
_OF_OLDER: Final[_Members] = {
    "version": "text",
    r"serialized_exported_program\.json": "json",
    r"serialized_(?:state_dict|constants|example_inputs)\.pt": "tensors",
    "extra_files/.+": "unread",
}
"""Members before torch 2.8."""
_ROOT: Final = "archive/"


@dataclass(frozen=True, slots=True)
class _Source:
    """The file, with the folder and the name patterns of its members."""

    path: Path
    root: str
    members: _Members

    def content_of(self, name: str) -> str:
        """Return the kind of content of the member `name`: "text", "json", "names", "tensors", "bytes" or "unread".
        Raise HostError for a member that torch.export.save does not write."""
        inner = name.removeprefix(self.root)
        for pattern, content in self.members.items() if name.startswith(self.root) else ():
            if re.fullmatch(pattern, inner):
                return content
        raise self.refusal(name, "is no member that torch.export.save writes for a model")

    def refusal(self, name: str, fault: str) -> HostError:
        """Return the error, for the caller to raise, for the member `name`; `fault` is what follows its name in the
        message."""
        return HostError(
            f"compile: {self.path}: {printable_name(name)} {fault}: reading such a file may run any code: "
            "where you trust it, compile what torch.export.load gives"
        )


def read_checked_archive(path: Path) -> io.BytesIO:
    """Return an archive of the checked members that torch.export.load reads. Raise HostError for a file that is missing
    or no such archive, and for one with content that torch would run as code: members that torch.export.save does not
    write or that occur twice, pickled Python objects (pickles of tensors alone are read without running any),
    expressions that call anything but functions of sizes, and texts that are no operators or names."""
    if not path.exists():
        raise HostError(f"compile: {path}: no such file")
    result = io.BytesIO()
    try:
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(result, "w") as copy:
            source = _describe_archive(path, archive)
            if source.root:
                root = _ROOT
            else:
                root = ""
            for info in archive.infolist():
                content = source.content_of(info.filename)
                if content != "unread":
                    data = _check_member(source, info.filename, content, archive.read(info))
                    copy.writestr(root + info.filename.removeprefix(source.root), data)
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, RuntimeError) as error:
        raise HostError(f"compile: {path} is not a file of torch.export.save: {error}") from None
    result.seek(0)
    return result


def _refuse_equal_names(source: _Source, infos: Sequence[zipfile.ZipInfo]) -> None:
    """Raise HostError if two members have names that torch takes for the same."""
    lowered_names: set[str] = set()
    for info in infos:
        name = info.filename.lower()
        if name in lowered_names:
            raise source.refusal(info.filename, "stands in it twice, as torch compares names")
        lowered_names.add(name)


def _describe_archive(path: Path, archive: zipfile.ZipFile) -> _Source:
    """Return the folder and the name patterns of the archive. Raise HostError for members with the same name or with
    compressed or encrypted bytes, BadZipFile if there are no members or they overlap."""
    infos = archive.infolist()
    if not infos:
        raise zipfile.BadZipFile("it has no members")
    first, slash, _ = infos[0].filename.partition("/")
    is_older = any(info.filename == "version" for info in infos)
    source = _Source(path, "" if is_older else first + slash, _OF_OLDER if is_older else _OF_ARCHIVES)
    _refuse_equal_names(source, infos)
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise HostError(
                f"compile: {path}: {printable_name(info.filename)} is compressed or encrypted, and torch.export.save "
                "does neither: write the file with it"
            )
    if sum(info.file_size for info in infos) > path.stat().st_size:
        raise zipfile.BadZipFile("its members share their bytes")
    return source


def _check_member(source: _Source, name: str, content: str, data: bytes) -> bytes:
    """Check a member and return the bytes that torch gets. Raise HostError for content that may run code."""
    if content == "tensors" and data and not _is_of_tensors(data):
        raise source.refusal(name, "holds Python objects as pickles")
    if content not in ("json", "names"):
        return data
    document = json.loads(data)
    if not isinstance(document, dict):
        raise zipfile.BadZipFile(f"{printable_name(name)} is no JSON object")
    fault = find_fault(document) or (find_name_fault(document) if content == "names" else "")
    if fault:
        raise source.refusal(name, fault)
    return json.dumps(_without_guards(document)).encode()


def _without_guards(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without the Python code by which torch would check inputs, which the compiler does not
    call."""
    return {key: [] if key == "guards_code" else value for key, value in document.items()}


def _is_of_tensors(data: bytes) -> bool:
    """Return whether torch reads a pickle with `weights_only`, which runs no code. torch.export.load would read it
    without that option if this fails."""
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception:  # noqa: BLE001 - whatever it is, it would be read the other way
        return False
    return True
