"""The reader: what it understands, what it skips by name, and what it says of text that is wrong."""

import re
import subprocess
import sys
from random import Random

import pytest

from buda_emu.foreign.vpux import load, read
from buda_emu.foreign.vpux.model import AffineMap, Dense, Op, Opaque, Symbol, Type
from buda_emu.foreign.vpux.program import Program, declared_spaces
from buda_emu.foreign.vpux.reader.table import OPS, ROLES
from buda_emu.support.errors import HostError
from vpux_documents import NETWORK, dma, document, function, module


def first(text: str, name: str):
    (found,) = [op for op in document(text).function("main").walk() if op.name == name][:1]
    return found


def in_function(statement: str) -> str:
    return f"func.func @main(%arg0: memref<4xf16>) {{\n{statement}\nreturn\n}}"


def type_of(text: str) -> Type:
    (value,) = document(f"func.func @main(%a: {text}) {{\nreturn\n}}").function().arguments
    assert value.type is not None
    return value.type


def test_types() -> None:
    of = type_of("memref<1x3x?x8xf16, affine_map<(n, c, h, w) -> (n, h, w, c)>, [@CMX_NN, 1]>")
    assert (of.kind, of.shape, of.element_name, of.space, of.space_index) == (
        "memref",
        (1, 3, -1, 8),
        "f16",
        "CMX_NN",
        1,
    )
    assert of.order is not None
    assert of.order.name == "NHWC"
    of = type_of("memref<2x3xsi32, {order = affine_map<(a, b) -> (a, b)>, strides = [8, 1]}, @DDR>")
    assert (of.strides, of.memory_strides, of.is_compact) == ((8, 1), (256, 32), False)
    of = type_of(
        "!VPUIP.DistributedBuffer<1x2x!quant.uniform<u8:f16, 0.5:3>, affine_map<(a, b) -> (a, b)>, @CMX_NN, "
        '{mode = "DUPLICATED", num_clusters = 2 : i64, strides = [1, 1]}>'
    )
    assert (of.kind, of.bits, of.strides, of.traits["mode"]) == ("distributed", 8, None, "DUPLICATED")
    of = type_of("!VPUIP.BoundedBuffer<data=memref<1x2xf16>, dynamic_shape=memref<2xsi32>>")
    assert (of.kind, [part.shape for part in of.parts]) == ("bounded", [(1, 2), (2,)])
    assert type_of("memref<*xf16,>").shape is None
    assert type_of("tensor<f32>").shape == ()
    assert type_of("memref<1x2xf16, 1>").space is None
    assert type_of("!Some.Thing<<a -> b>, 3>").name == "Some.Thing"


def test_attributes() -> None:
    op = first(
        in_function(
            'VPUIP.SW.Kernel {a = 6.08E-4 : f64, b = -3 : i64, c, d = "x \\" y", e = [1, [2.5]], f = {g : @h::@i}, '
            "j = array<i32: -1, 2>, k = #VPUIP.X<n = 2 : i64>, l = dense<[1]> : tensor<1xi8>, m = true, "
            "o = affine_map<(a, b) -> (b, a)>, p = memref<2xf16>, q = 0x3C00 : f16, r = #a.b, s = array<i32>} "
            "@VPU.SW::@k inputs() outputs()"
        ),
        "VPUIP.SW.Kernel",
    )
    found = op.attributes
    assert [found[key] for key in "abcdem"] == [6.08e-4, -3, True, 'x " y', (1, (2.5,)), True]
    assert found["f"] == {"g": Symbol(("h", "i"))}
    assert (found["j"], found["s"], found["q"]) == ((-1, 2), (), 1.0)
    assert isinstance(found["k"], Opaque)
    assert dict(found["k"].fields) == {"n": 2}
    assert isinstance(found["l"], Dense)
    assert isinstance(found["o"], AffineMap)
    assert isinstance(found["p"], Type)
    assert found["r"] == Opaque("a.b", "#a.b")


def test_lists_of_values_with_types_apart_together_and_without() -> None:
    for text in (
        "(%a as %x: memref<4xf16>, %b as %y: memref<2xf16>)",
        "(%a as %x, %b as %y : memref<4xf16>, memref<2xf16>)",
        "(%a as %x, %b as %y)",
    ):
        op = first(
            f"func.func @main(%a: memref<4xf16>, %b: memref<2xf16>) {{\nVPUIP.SW.Kernel @VPU.SW::@k inputs{text} "
            "outputs() on tile 1\nreturn\n}",
            "VPUIP.SW.Kernel",
        )
        uses = op.clause("inputs")
        assert [use.name for use in uses] == ["%a", "%b"]
        assert [use.inner and use.inner.name for use in uses] == ["%x", "%y"]
        assert [use.type and use.type.shape for use in uses] == [(4,), (2,)]
        assert op.attributes["tile"] == 1


def test_several_results_have_numbers() -> None:
    text = in_function(
        "%r:2 = Some.Op %arg0\nVPUIP.Copy inputs(%r#1 : memref<4xf16>) outputs(%r : memref<4xf16>) -> memref<4xf16>"
    )
    (use,) = first(text, "VPUIP.Copy").clause("inputs")
    assert use.value is not None
    assert use.value.name == "%r#1"
    assert first(text, "VPUIP.Copy").clause("outputs")[0].value is not None


def test_unknown_ops_are_skipped_by_their_brackets() -> None:
    text = in_function(
        '%0 = Some.Op(%arg0) {a = "}"} : memref<4xf16>\n  -> !Some.Type<1> variants : {\n  Other.Op %x\n} P : {\n}\n'
        '%1 = "generic.op"(%0) ({\n}) : () -> ()\nVPUIP.SyncDMA inputs(%arg0) outputs(%arg0) -> memref<4xf16>'
    )
    assert [op.name for op in document(text).function().walk()] == ["Some.Op", "generic.op", "VPUIP.SyncDMA", "return"]
    assert [found.rule for found in document(text).check()] == ["X048", "X048", "X026"]


def test_locations_comments_aliases_and_resources() -> None:
    text = """// a comment with "quotes
#loc = loc("file":1:2)
{-# dialect_resources: { builtin: { blob: "0x00" } } #-}
!T = memref<4xf16> /* of
several lines */
module @m attributes {x.y = 1 : i64} {
  func.func @main(%a: !T loc("a")) -> (!T {z = 1}) {
    #later = affine_map<(d0) -> (d0)>
    return %a : !T loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
    read_text = document(text)
    assert read_text.check() == []
    main = read_text.function()
    assert (main.place.line, main.results[0].shape) == (7, (4,))
    assert main.modules[1].attributes == {"x.y": 1}


def test_networks_describe_their_inputs() -> None:
    today = (
        'IE.CNNNetwork entryPoint : @main inputsInfo : {\nDataInfo "in" : tensor<1xf16>\n'
        'IE.DataInfo "b" tensorNames = ["c"] : tensor<2xf32>\n} outputsInfo : {\n} profilingOutputsInfo : {\n'
        'DataInfo "p" {\nVPUIP.ProfilingSection type 4 : 2 bytes from 0\n} : tensor<4xui32>\n}'
    )
    seed = (
        'IE.CNNNetwork {\nentryPoint = @main, netName = "n"\n} inputsInfo {\n'
        'IE.DataInfo {name = "in", precision = f32, layout = "NCHW">}\n} outputsInfo {\n}'
    )
    for text in (today, seed):
        assert document(f"module {{\n{text}\nfunc.func @main() {{\nreturn\n}}\n}}").splits[0].error is None, text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main(%a: memref<4xf16>", r"expected '\)', found the end"),
        ("func.func @main() {\nreturn\n", "missing at the end"),
        ("}", "closes nothing"),
        ("func.func @main(%a: !T) {\n}", "!T is not defined"),
        (in_function("VPUIP.NNDMA inputs(%arg0 : memref<4xf16>) -> memref<4xf16>"), "expected outputs()"),
        (in_function("VPUIP.NNDMA inputs(%arg0 : memref<4xf16, memref<1xf16>) outputs(%arg0)"), "'<' is not closed"),
        (in_function("VPUIP.NNDMA inputs(memref<4xf16>) outputs(%arg0)"), "expected a value, found 'memref"),
        (in_function("nonsense"), "expected a statement, found 'nonsense'"),
        (in_function("%0 = Some.Op (["), "closes nothing"),
        (in_function("Some.Op (]"), "closes nothing"),
        (in_function("VPURT.DeclareBuffer <DDR> <0> -> memref<" + "(" * 200), "more than 64 brackets|not closed"),
        ("module " + "{ module " * 1200, "more than 1000 modules"),
        (in_function("%a:99999999 = Some.Op"), "results"),
        (in_function("%0 = memref.alloc() : memref<99999999999999999999xf16>"), "18 digits"),
        (in_function("%0 = memref.alloc() : memref<9999999x9999999x9999999xf16>"), "elements"),
    ],
)
def test_text_that_cannot_be_read_says_where(text: str, message: str) -> None:
    read_text = document(text)
    (found,) = read_text.check()
    assert (found.rule, found.function) == ("X001", "")
    assert re.search(message, found.message), found.message


def test_a_buffer_lies_on_as_many_clusters_as_its_type_says_but_64() -> None:
    def spaces(clusters: int) -> int:
        traits = f'{{mode = "DUPLICATED", num_clusters = {clusters} : i64}}'
        of = f"!VPUIP.DistributedBuffer<4xf16, affine_map<(a) -> (a)>, @CMX_NN, {traits}>"
        declared = first(in_function(f"%0 = VPURT.DeclareBuffer <CMX_NN> <0> -> {of}"), "VPURT.DeclareBuffer")
        static = document(in_function(f"%0 = VPUIP.StaticAlloc<0> -> {of}"))
        placed = Program(static.function("main"))
        buffer = placed.buffers[placed.names["%0"]]
        assert buffer.spaces == declared_spaces(declared)
        return len(buffer.spaces)

    assert [spaces(count) for count in (2, 64, 65, 1 << 40)] == [2, 64, 64, 64]


def test_one_split_of_a_file(tmp_path) -> None:
    file = tmp_path / "two.mlir"
    file.write_text(f"{NETWORK}// ----- two\n{NETWORK}//-----\n")
    assert [item.split for item in load(file).functions] == [0, 1]
    (main,) = load(file, split=1).functions
    assert main.place.line == NETWORK.count("\n") + 1 + NETWORK.split("func.func @main")[0].count("\n") + 1
    with pytest.raises(HostError, match="splits 0 to 1"):
        load(file, split=2)


def test_every_op_has_a_role_and_a_sentence() -> None:
    for spec in OPS.values():
        assert spec.role in ROLES
        assert spec.summary
        assert spec.formats


def test_reading_and_checking_import_no_numpy() -> None:
    code = (
        "import sys\nfrom buda_emu.foreign import vpux\n"
        f"document = vpux.read({NETWORK!r})\nassert document.check() == []\n"
        "assert not {'numpy', 'numba'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_transfer_is_read() -> None:
    op = first(module(function(dma("%arg0", "%arg1", attributes="port = 1 : i64"))), "VPUIP.NNDMA")
    assert op.integer("port", 0) == 1
    assert read("").functions == ()


_T = "memref<4xf16, @DDR>"
# `~` marks a place where an attribute dictionary or a location may stand.
_ANNOTATED = (
    "%b = VPURT.ConfigureBarrier ~ <3> ~ -> !VPURT.Barrier ~",
    "%b = VPURT.DeclareVirtualBarrier ~ -> !VPURT.Barrier ~",
    f"%b = VPURT.DeclareBuffer ~ <CMX_NN> ~ [0] ~ <64> ~ -> {_T} ~",
    (
        f"VPURT.Task ~ waits(%arg0 : {_T}) ~ updates(%arg1 : {_T}) ~ attributes {{x = 1 : i64}} ~ {{\n"
        f"%t = VPUIP.NNDMA ~ inputs(%arg0 : {_T}) ~ outputs(%arg1 : {_T}) ~ -> {_T} ~\n}} ~"
    ),
    f"%v = VPUIP.SubView ~ %arg0 ~ [0] ~ [2] ~ : {_T} ~ to {_T} ~",
    f"%v = VPUIP.ShapeCast ~ inputs(%arg0 : {_T}) ~ -> {_T} ~",
    f"%v = VPUIP.ConcatView ~ inputs(%arg0, %arg1 : {_T}, {_T}) ~ outputs(%arg1 : {_T}) ~ -> {_T} ~",
    (
        f"%k = VPUIP.SW.Kernel ~ @VPU.SW::@k ~ inputs(%arg0 as %x: {_T}) ~ outputs(%arg1 as %y: {_T}) ~ on tile 0 ~ "
        f"-> {_T} ~ {{\nVPUIP.SW.Kernel.run ~ (%x, %y) ~ : {_T}, {_T} ~\n}} ~"
    ),
    f"%c = const.Declare ~ {_T} ~ = dense<1.0> : tensor<4xf16> ~, [#const.Reorder<#O>] ~",
    f"%m = memref.alloc ~ () ~ : {_T} ~",
    f"memref.dealloc ~ %arg0 ~ : {_T} ~",
    f"%s = IE.SoftMax ~ (%arg0) ~ : ({_T}) -> {_T} ~",
    f"%s = IERT.ReLU ~ inputs(%arg0 : {_T}) ~ outputs(%arg1 : {_T}) ~ -> {_T} ~",
    "return ~",
    f"return ~ %arg0 ~ : {_T} ~",
    f"func.return ~ %arg0, %arg1 ~ : {_T}, {_T} ~",
)
_LOCATIONS = ('loc("file":1:2)', "loc(#loc)", 'loc(fused<{a = "b"}>["x", callsite("y" at unknown)])', "loc(unknown)")


def _read_ops(statement: str) -> list[Op]:
    text = f"#O = affine_map<(d0) -> (d0)>\nfunc.func @main(%arg0: {_T}, %arg1: {_T}) {{\n{statement}\nreturn\n}}\n"
    read_document = document(text)
    assert read_document.splits[0].error is None, (text, read_document.splits[0].error)
    return list(read_document.function("main").walk())


def _annotate(statement: str, random: Random) -> tuple[str, dict[str, object]]:
    """Replace the marks of a statement by nothing, dictionaries and locations. Returns the keys that were added."""
    added: dict[str, object] = {}
    text = ""
    for part in statement.split("~"):
        text += part
        for _ in range(random.choice((0, 0, 1, 2))):
            key, kind = f"{random.choice(('key', 'x.y', 'VPU.z'))}{len(added)}", random.randrange(4)
            text += (f'{{{key} = ["true", 1 : i64]}}', f"{{{key}}}", f"{{ {key} = {{n = 2 : i64}}, u }}", "")[
                kind
            ] + " "
            if kind < 3:
                added[key] = (("true", 1), True, {"n": 2})[kind]
            text += random.choice(("", *_LOCATIONS)) + " "
    return text, added


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 60))])
@pytest.mark.parametrize("statement", _ANNOTATED, ids=lambda text: re.split(r"[ ~]+", text.split("= ")[-1])[0])
def test_dictionaries_and_locations_stand_anywhere(statement: str, seed: int) -> None:
    """An op is read as without them, with all attributes; what stands in its region belongs to the inner op."""
    plain = _read_ops(statement.replace("~", ""))
    text, added = _annotate(statement, Random(f"{seed} {statement}"))
    annotated = _read_ops(text)

    def shape(op: Op) -> tuple[object, ...]:
        uses = {word: [use.name for use in uses] for word, uses in op.operands.items()}
        return op.name, [value.name for value in op.results], op.types, uses, len(op.body), op.blocks

    assert [shape(op) for op in annotated] == [shape(op) for op in plain]
    attributes: dict[str, object] = {}
    for op, without in zip(annotated, plain, strict=True):
        assert op.attributes.items() >= without.attributes.items()
        attributes.update(op.attributes)
    assert attributes.items() >= added.items()
