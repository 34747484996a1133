"""Broken IR is found by the reader or the verifier, by name, or does no harm."""

import random
import re
from functools import cache
from typing import get_type_hints

import pytest

from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.compile import compile_from
from buda_emu.compiler.emit.netlist import _SECTIONS
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.spec import FRONT
from buda_emu.compiler.ir.text import Ir, parse_file, parse_ir, print_file, write_ir
from buda_emu.compiler.ir.values import IrError
from buda_emu.compiler.ir.verify import OWN, problems
from buda_emu.compiler.lower.tiles import TileAttributes
from buda_emu.compiler.pipeline import NAMES, Context, file_of, run
from buda_emu.compiler.place.placement import ROLES
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.support.errors import BudaError, Exit, InternalError

CORE = """core "g":
  x = input {label: "x"} : float32[2, 3] from "x"
  w = constant {value: float32[1, 3] = [1.0, 2.0, 3.0]} : float32[1, 3]
  a = exp(x) : float32[2, 3]
  y = add(a, w) : float32[2, 3]
  z = reduce_max(y) {dim: 1} : float32[2, 1]
  output "z" = z : float32
"""
OUTSIDE = "Sparse(shape: (3, 3), row: int64[1] = [0], col: int64[1] = [9], weight: float32[1] = [1.0])"
TILE = """tile "g":
  input x {label: "x", shape: (1, 1, 2), view: (1, 8, 64)}
  constant w {values: float32[1, 64, 32] = 0.5}
  p = matmul(x, w) : [1, 1, 1] with {inner: 2, source: "p"}
  y = gelu(p) : [1, 1, 1] with {source: "y"}
  output out {label: "y", op: "y", view: (1, 8, 32), host_shape: (8, 32), dtype: "float32"}
"""
FUSED = """tile "g":
  input x {label: "x", shape: (1, 1, 1), view: (1, 8, 32)}
  y = fused_op(x, x) : [1, 1, 1] with {source: "y"}
    step a = exp(input0) : dest
    step y = add(dest, input1) : output
  output out {label: "y", op: "y", view: (1, 8, 32), host_shape: (8, 32), dtype: "float32"}
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "complaint"),
    [
        (CORE, "a = exp(x) : float32[2, 3]", "a = exp(x) : float32[3, 2]", r"a = exp: has shape \[3, 2\], .*\[2, 3\]"),
        (CORE, "add(a, w)", "add(a)", "y = add: its operands or attributes are not those of add"),
        (CORE, "a = exp(x) : float32", "a = exp(x) : int7", "a: there is no element type int7"),
        (CORE, "exp(x)", "exp(nobody)", r"a = exp\(nobody\).*not: has operands that come before it"),
        (CORE, "exp(x)", "exp(y)", r"a = exp\(y\).*not: has operands that come before it"),
        (CORE, "{dim: 1}", "{dim: 7}", "z = reduce_max: "),
        (CORE, "{dim: 1}", "{dam: 1}", "z = reduce_max: its operands or attributes"),
        (CORE, "add(a, w)", f"linear(a) {{dim: 1, matrix: {OUTSIDE}}}", "entries of its matrix are outside"),
        (CORE, '"z" = z', '"z" = q', "output z: there is no node q"),
        (CORE, "exp(x)", "expo(x)", r"a = expo\(x\).*not: is a core op"),
        (TILE, ": [1, 1, 1] with {inner: 2", ": [1, 1, 3] with {inner: 2", r"p = matmul: operand 1 is \[1, 2, 1\]"),
        (TILE, "matmul(x, w)", "matmul(x)", "p = matmul: 1 operand, it takes 2"),
        (TILE, "gelu(p)", "gelu(q)", "y: q is not defined before it"),
        (TILE, "matmul(x, w)", "matmul(y, w)", "p: y is not defined before it"),
        (TILE, "gelu(p)", "gelu(p) {slope: 0.5}", "y = gelu: attribute slope is not one of gelu"),
        (TILE, "gelu(p)", 'gelu(p) {relu_en: "yes"}', "attribute relu_en of type bool cannot be 'yes'"),
        (TILE, "gelu(p)", "gelu(p <hslice 3>)", "y = gelu: operand 0: hslice 3 does not divide 1"),
        (TILE, "matmul(x, w)", "matmul(x <hslice 2, vstack 2, transpose>, w)", "matmul transposes its input 1 only"),
        (TILE, "gelu(p)", "splice(p <transpose>)", "operand 0: splice cannot transpose"),
        (TILE, "gelu", "gelo", "y = gelo: there is no op type gelo"),
        (TILE, '{source: "y"}', '{source: "y", precision: Precision(df: "Int7")}', "y: there is no format Int7"),
        (FUSED, "add(dest, input1)", "add(dest, input0)", "y = fused_op: operand 1: no step reads it"),
        (TILE, 'op: "y"', 'op: "q"', "q: an output or state is to be written by it"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_named(text, old, new, complaint):
    assert problems(parse_ir(text)) == []
    assert old in text
    (found, *_) = problems(parse_ir(text.replace(old, new)))
    assert re.search(complaint, found), found


def test_attributes_have_types_that_their_tables_have():
    """`ublocks` is of a draft, and in no IR."""
    names = {"int": int, "bool": bool, "float": float, "word": str}
    own = {name: kind for name, kind in get_type_hints(TileAttributes).items() if name != "ublocks"}
    told = {name: names.get(ATTRIBUTES[name].kind) for name in own if name in ATTRIBUTES}
    assert told == {name: own[name] for name in told}
    assert own.keys() - told.keys() == {name for name in OWN if not name.startswith("input")}


def test_a_placement_off_the_chip_or_on_others_cores_is_named():
    file = whole()["fork_room"]
    text, arrays = print_file(file)
    for old, new, complaint in (
        (r"at \(0, 0\)", "at (40, 0)", "the chip has 10x8"),
        (r"ublock: \(2, 1\)\)", "ublock: (2, 3))", "its blocks are"),
        (r'df: "Float16_b"', 'df: "Float17"', "there is no format Float17"),
    ):
        head, body = text.split("\nplaced ")
        edited = re.sub(old, new, body, count=1)
        assert edited != body
        form = parse_file(f"{head}\nplaced {edited}", arrays).forms[0]
        assert any(complaint in problem for problem in problems(form))


@pytest.mark.parametrize(("arch", "refused"), [("grayskull", True), ("wormhole_b0", False), ("", False)])
def test_an_operand_is_transposed_where_the_architecture_can(arch, refused):
    form = parse_ir(TILE.replace("gelu(p)", "add(p <transpose>, p)"))
    assert problems(form, arch) == ["y = add: operand 0: add cannot transpose on grayskull"] * refused


@cache
def whole():
    """Two layers, a norm and a softmax after each pass."""
    b = Builder(Graph("small"), decompose=False)
    x = b.input("x", (5, 70), "float32")
    hidden = b.gelu(b.add(b.matmul(x, _weights(b, 70, 40)), 0.5))
    y = b.softmax(b.matmul(b.transpose(hidden, perm=(1, 0)), _weights(b, 5, 33)), dim=1)
    b.graph.outputs = [Output("y", y.name, "float32")]
    context = Context()
    files, forms, before = {}, [Ir(FRONT, b.graph)], NAMES[0]
    for name in NAMES[1:]:
        files[before] = parse_file(*print_file(file_of(before, forms, context)))  # passes change tiles in place
        forms, before = run(forms, context, after=before, stop=name), name
    files[before] = file_of(before, forms, context)
    return files


def _weights(b, rows, columns):
    import numpy as np

    return b.constant(np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32))


def broken(rng, text):
    """The text with one thing changed in a line that is not a heading."""
    lines = text.splitlines()
    number = rng.choice([n for n, line in enumerate(lines) if line.startswith("  ") and len(line) > 4])
    line = lines[number]
    names = sorted({found for line in lines for found in re.findall(r"^  (\w[\w.]*) =", line)})
    kind = rng.randrange(8)
    if kind == 0:  # a wrong shape or number
        line = _one(rng, r"\b\d+\b", line, lambda found: str(int(found) + rng.choice((-1, 1, 7, 1000))))
    elif kind == 1:  # a missing operand
        line = _one(rng, r"[\w.]+, ", line, lambda _: "")
    elif kind == 2:  # a type that there is not, or another one
        words = ("int7", "Float7", "int32", "Int8", "bool")
        line = _one(rng, r"float32|Float16_b|int64|matmul|add|queue|value", line, lambda _: rng.choice(words))
    elif kind == 3 and names:  # an operand that stands later, or another one
        line = _one(rng, r"(?<=[(,] )\w[\w.]*|(?<=\()\w[\w.]*", line, lambda _: rng.choice(names))
    elif kind == 4:  # another attribute
        line = _one(rng, r"\w+(?=: )", line, lambda _: rng.choice(("dim", "axis", "grid", "bias", "label", "shape")))
    elif kind == 5:  # an operand is transposed
        line = _one(
            rng,
            r"(?<=[(,] )[a-z][\w.]*(?=[,)])|(?<=[(])[a-z][\w.]*(?=[,)])",
            line,
            lambda found: f"{found} <transpose>",
        )
    elif kind == 6:  # a line is gone
        return "\n".join(lines[:number] + lines[number + 1 :])
    else:  # a line stands elsewhere
        lines.insert(rng.randrange(4, len(lines)), lines.pop(number))
        return "\n".join(lines)
    lines[number] = line
    return "\n".join(lines)


def _one(rng, pattern, line, change):
    found = list(re.finditer(pattern, line))
    if not found:
        return line
    place = rng.choice(found)
    return line[: place.start()] + change(place[0]) + line[place.end() :]


@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=pytest.mark.slow)])
def test_broken_ir_is_refused_or_does_no_harm(count):
    rng = random.Random(37)
    texts = {name: print_file(file) for name, file in whole().items()}
    compilation = Compilation.of(CompileOptions(effort="low"))
    refused = 0
    for _ in range(count):
        text, arrays = texts[rng.choice(list(texts))]
        edited = broken(rng, text)
        try:
            compilation.resume(parse_file(edited, arrays))
        except InternalError as error:
            pytest.fail(f"{error}:\n{_difference(text, edited)}")
        except BudaError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} {error}:\n{_difference(text, edited)}") from error
    assert refused > count / 3


PIECES = (
    "", " ", '"', ")", "{", "[1]", "-", "-1", "nan", "none", "9" * 5000, "99999999999", "1e999", "\x00", "\ud7ff", "x",
    '"\\u{110000}"', "<transpose>", "[" * 3000, "(" * 3000, "{a: " * 3000, "- " * 3000, "Blocks(", "set[[1]]",
    "float32[99999999, 9999999] = 0.5", 'float32("x")', "int8(300)", "float32[2] @0123456789ab", "PickTable#1.5(",
)  # fmt: skip


def damaged(rng, text):
    """The text with anything changed anywhere: words, signs, whole parts."""
    words = list(re.finditer(r"\w+|[^\w\s]|\"[^\"]*\"", text))
    word = rng.choice(words)
    begin, end = word.span()
    match rng.randrange(7):
        case 0:
            return text[:begin] + text[begin:end][::-1] + text[end:]
        case 1:
            return text[:begin] + rng.choice(PIECES) + text[end:]
        case 2:
            return text[:end] + rng.choice(PIECES) + text[end:]
        case 3:
            return text[:begin] + rng.choice(words)[0] + text[end:]
        case 4:
            other = rng.randrange(len(text))
            return text[: min(begin, other)] + text[max(begin, other) :]
        case 5:
            return text[:begin]
        case _:
            part = text[begin : begin + rng.randrange(1, 400)]
            return text[:begin] + part * 2 + text[begin + len(part) :]


def damaged_bytes(rng, data):
    """An archive with some bytes changed, missing or twice."""
    place = rng.randrange(len(data))
    match rng.randrange(3):
        case 0:
            return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
        case 1:
            return data[:place]
        case _:
            return data[:place] + data[place : place + 200] * 2 + data[place + 200 :]


@pytest.mark.parametrize("count", [60, pytest.param(4000, marks=pytest.mark.slow)])
def test_damaged_files_are_refused_by_name_or_do_no_harm(tmp_path, count):
    rng = random.Random(38)
    files = {}
    for name, file in whole().items():
        text, arrays = write_ir(tmp_path, name, file)
        files[name] = text.read_text(), arrays.read_bytes()
    path = tmp_path / "model.ir"
    refused = 0
    for _ in range(count):
        text, arrays = files[rng.choice(list(files))]
        in_arrays = rng.random() < 0.2
        edited = text if in_arrays else damaged(rng, text)
        path.write_bytes(edited.encode())
        path.with_suffix(".npz").write_bytes(damaged_bytes(rng, arrays) if in_arrays else arrays)
        try:
            compile_from(path, effort="low")
        except BudaError as error:
            assert error.exit_code != Exit.INTERNAL, f"{error}:\n{_difference(text, edited)}"  # noqa: PT017
            assert len(str(error)) < 5000, f"{str(error)[:200]}:\n{_difference(text, edited)[:5000]}"  # noqa: PT017
            refused += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} {error}:\n{_difference(text, edited)[:5000]}") from error
    assert refused > count / 3


@pytest.mark.parametrize(
    ("level", "old", "new", "complaint"),
    [
        ("search", r'df: "Float16_b", fid', 'df: " ", fid', r"model\.ir:3:\d+: compile: df ' ' is not one of"),
        ("search", r'role: "constant"', 'role: "tnatsnoc"', r"model\.ir:\d+: queue .*there is no role tnatsnoc"),
        ("search", r"grid: \(10, 8\)", "grid: (11, 8)", r"model\.ir:3:\d+: wormhole_b0 has \[10, 8\] cores"),
        ("search", r"grid: \(10, 8\)", "grid: (10,)", r"model\.ir:3:\d+: \(10,\) is not rows and columns"),
        ("search", r"\n  held [^\n]*", "", r"model\.ir:\d+: .*no line `held"),
        ("search", r"\n    at [^\n]*", "", r"model\.ir:\d+: .*no line says `at`"),
        ("lower", r"inner: \d+", f"inner: {'[' * 5000}", r"model\.ir:\d+:\d+: more than 40 values within each other"),
        ("lower", r"inner: \d+", f"inner: {'- ' * 5000}1", r"model\.ir:\d+:\d+: more than 40 values within each other"),
        ("lower", r"inner: \d+", f"inner: {'9' * 5000}", r"model\.ir:\d+:\d+: a number of more than 400 digits"),
        ("search", r"columns: 1", "columns: -1", r"model\.ir:\d+: .*a number of tiles is negative"),
        ("lower", r"inner: \d+", 'inner: -"x"', r"model\.ir:\d+:\d+: a number is missing after '-'"),
        ("lower", r"label: \"x\"", 'label: "\\\\u{110000}"', r"model\.ir:\d+:\d+: there is no character"),
        (
            "lower",
            r"float32\[[^]]*\] @\w+",
            "float32[9999999, 999999999] = 1.0",
            r"model\.ir:\d+:\d+: .*no memory for it",
        ),
    ],
)
def test_a_damaged_line_is_named(tmp_path, level, old, new, complaint):
    text, _ = write_ir(tmp_path, "model", whole()[level])
    edited = re.sub(old, new, text.read_text(), count=1)
    assert edited != text.read_text()
    text.write_text(edited)
    with pytest.raises(IrError, match=complaint):
        compile_from(text, effort="low")


def test_roles_of_queues_are_those_of_which_a_netlist_has_sections():
    assert tuple(_SECTIONS) == ("input", "constant", "state", "between", "fork", "output")
    assert tuple(_SECTIONS) == ROLES


def _difference(one, two):
    import difflib

    return "\n".join(line for line in difflib.ndiff(one.splitlines(), two.splitlines()) if line[0] in "+-")
