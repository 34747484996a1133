"""Sentences of the facts that are easy to read too narrowly: types of elements, scalars, modules, hostile text."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buda_emu.foreign import vpux
from buda_emu.foreign.vpux.arguments import flatten, pack
from buda_emu.foreign.vpux.execute.run import RunResult
from buda_emu.support.errors import HostError, ProgramError, UnsupportedError
from vpux_documents import document, rules

F16 = "memref<1x2x2x2xf16, @DDR>"
KERNELS = """module @VPU.SW {{
  func.func private @k() attributes {{VPU.kernel_code = "k.cpp", VPU.kernel_entry = "{entry}"}}
  func.func private @runtime() attributes {{VPU.kernel_code = "nnActEntry"}}
}}
"""


def called(entry: str, ins: list[str], out: str, attributes: str = "") -> str:
    """A function without tasks that calls one kernel."""
    arguments = ", ".join(f"%a{n}: {of}" for n, of in enumerate(ins))
    given = ", ".join(f"%a{n} as %x{n}: {of}" for n, of in enumerate(ins))
    names = "".join(f"%x{n}, " for n in range(len(ins)))
    return (
        KERNELS.format(entry=entry)
        + f"""func.func @main({arguments}) -> {out} {{
  %o = memref.alloc() : {out}
  %r = VPUIP.SW.Kernel @VPU.SW::@k inputs({given}) outputs(%o as %y: {out}) on tile 0 -> {out} {{
    VPUIP.SW.Kernel.run {{attrs = [{attributes}]}}({names}%y) : {", ".join([*ins, out])}
  }}
  return %r : {out}
}}
"""
    )


def constant(of: str, content: str) -> str:
    return f"func.func @main() -> {of} {{\n%c = const.Declare {of} = {content}\nreturn %c : {of}\n}}\n"


def run(text: str, **inputs: Any) -> RunResult:
    return vpux.run(document(text), inputs={int(name[1:]): value for name, value in inputs.items()})


def out(text: str, **inputs: Any) -> list[Any]:
    return run(text, **inputs).outputs[0].reshape(-1).tolist()


@pytest.mark.parametrize(
    ("of", "content", "wanted"),
    [
        ("memref<2xbf16>", "dense<1.0> : tensor<2xbf16>", [0x3F80] * 2),
        ("memref<2xbf16>", "dense<0x4000> : tensor<2xbf16>", [0x4000] * 2),
        ("memref<2xbf16>", "dense<[1.0, -2.0]> : tensor<2xf32>, [#const.ConvertElemType<bf16>]", [0x3F80, 0xC000]),
        ("memref<2xf32>", 'dense<"0x803F00C0"> : tensor<2xbf16>, [#const.ConvertElemType<f32>]', [1.0, -2.0]),
        ("memref<3xi4>", "dense<[1, 2, -1]> : tensor<3xi4>", [0x21, 0x0F]),
        ("memref<9xi1>", "dense<true> : tensor<9xi1>", [255, 1]),
        ("memref<8xi1>", "dense<true> : tensor<8xi1>", [255]),
        ("memref<8xi1>", 'dense<"0x05"> : tensor<8xi1>', [5]),
        ("memref<0xf16>", "dense<> : tensor<0xf16>", []),
    ],
)
def test_constants_of_every_type(of: str, content: str, wanted: list[float]) -> None:
    assert out(constant(of, content)) == wanted


def test_constants_that_end_in_an_error() -> None:
    with pytest.raises(UnsupportedError) as caught:
        run(constant("memref<4xf8E4M3FN>", "dense<1.0> : tensor<4xf8E4M3FN>"))
    assert caught.value.what == "type:f8E4M3FN"
    with pytest.raises(ProgramError, match="elements of a constant are wrong"):
        run(constant("memref<2xsi32>", f"dense<0x{'F' * 6000}> : tensor<2xsi32>"))


def test_scalars_that_are_too_wide_for_their_place() -> None:
    x = np.arange(8, dtype=np.float16).reshape(1, 2, 2, 2)
    clamp = called("activation_clamp", [F16], F16, "-1.797E+308 : f64, 3.0 : f64")
    assert out(clamp, i0=x) == [0, 1, 2, 3, 3, 3, 3, 3]
    assert pack([], [1e300, -1e300]) == bytes.fromhex("0000807f000080ff")
    assert pack([], [("f16", 1e6)], abi=32) == bytes.fromhex("007c")
    assert pack([], [(1 << 64) - 1]) == b"\xff" * 8
    buffers = vpux.serialize(document(called("mvn1", [F16], F16, "1 : i1, 0 : i1, 1.0")))["kernel_data"]
    assert buffers[-1]["bytes"][144:184] == "ff" * 8 + "00" * 8 + "0000803f"


@pytest.mark.parametrize("attributes", ["0x7FC00000 : f32", "4, 1, 1, 1, 0x7FC00000 : f32"])
def test_attributes_that_are_no_numbers(attributes: str) -> None:
    with pytest.raises(ProgramError) as caught:
        run(called("tile", [F16], F16, attributes))
    assert caught.value.rule == "X046"


@pytest.mark.parametrize("of", ["i4", "i1"])
def test_no_kernel_moves_parts_of_bytes(of: str) -> None:
    narrow = F16.replace("f16", of)
    with pytest.raises(UnsupportedError) as caught:
        run(called("tile", [narrow], narrow, "4, 1, 1, 1, 1"))
    assert caught.value.what == f"type:{of}"


def test_moving_kernels_convert_between_types() -> None:
    x = np.arange(8, dtype=np.float16).reshape(1, 2, 2, 2)
    wide = F16.replace("f16", "f32")
    assert out(called("tile", [F16], wide, "4, 1, 1, 1, 1"), i0=x) == x.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("entry", "wanted"), [("l1", [2.0, 3.0]), ("l2", [2.0, 3.0]), ("and", [1, 1]), ("sum", [-2.0, 3.0])]
)
def test_a_reduction_over_no_axes_is_computed(entry: str, wanted: list[float]) -> None:
    text = called(f"reduce_{entry}", ["memref<2xf32>"], "memref<2xf32>", "1, 0")
    assert out(text, i0=np.array([-2, 3], np.float32)) == wanted


def test_whole_numbers_divided_by_0_saturate() -> None:
    of = "memref<3xsi32>"
    text = called("eltwise_div", [of, "memref<1xsi32>"], of)
    values = [out(text, i0=np.array([5, -5, 0], np.int32), i1=np.array([by], np.int32)) for by in (0, -2)]
    assert values == [[2**31 - 1, -(2**31), 0], [-2, 2, 0]]


def test_all_bits_of_an_unsigned_number() -> None:
    of = "memref<3xui8>"
    assert out(called("eltwise_bitwise_not", [of], of), i0=np.array([0, 5, 255], np.uint8)) == [255, 250, 0]


def test_scalars_have_no_dimensions() -> None:
    assert out(called("activation_relu", ["memref<f16>"], "memref<f16>"), i0=np.array(2, np.float16)) == [2]


def test_a_descriptor_writes_every_slice_of_a_broadcast_buffer() -> None:
    mode = '{mode = "DUPLICATED", num_clusters = 2 : i64}'
    broadcast = f"!VPUIP.DistributedBuffer<8xui8, affine_map<(d0) -> (d0)>, @CMX_NN, {mode}>"
    fields = ", ".join(
        f"{name} = {value} : i64"
        for name, value in (
            ("numPlanes", 2),
            ("len", 4),
            ("srcWidth", 4),
            ("srcStride", 4),
            ("srcPlaneStride", 4),
            ("dstWidth", 2),
            ("dstStride", 4),
            ("dstPlaneStride", 2),
        )
    )
    text = f"""func.func @main(%a: memref<8xui8, @DDR>, %b: memref<8xui8, @DDR>) -> memref<8xui8, @DDR> {{
  %d = VPURT.DeclareBuffer <CMX_NN> [0, 1] <0> -> {broadcast}
  %one = VPURT.DeclareBuffer <CMX_NN> [1] <0> -> memref<8xui8, [@CMX_NN, 1]>
  VPUIP.PerAxisTileDMA {{dma_descriptor = #VPUIP.DMADescriptorAttr<{fields}>}} inputs(%a : memref<8xui8, @DDR>) outputs(%d : {broadcast}) -> {broadcast}
  VPUIP.NNDMA inputs(%one : memref<8xui8, [@CMX_NN, 1]>) outputs(%b : memref<8xui8, @DDR>) -> memref<8xui8, @DDR>
  return %b : memref<8xui8, @DDR>
}}
"""  # noqa: E501
    result = run(text, i0=np.arange(8, dtype=np.uint8))
    assert result.outputs[0].tolist() == [0, 1, 4, 5, 2, 3, 6, 7]
    assert result.races == []


def test_modules_are_nested_to_any_depth() -> None:
    function = "func.func @main() {\nreturn\n}\n"
    found = vpux.read("module {\n" * 300 + function + "} loc(unknown)\n" * 300)
    assert [len(item.modules) for item in found.functions] == [301]
    assert rules("module {\n" * 3 + function + "}\n" * 2) == ["X001"]
    assert rules("module {\n" * 2000) == ["X001"]


def test_kernels_of_modules_further_outside() -> None:
    inner = called("activation_relu", [F16], F16)
    outside, inside = inner.split("func.func @main")
    runtime = "VPURT.SW.Runtime entryPoint : @VPU.SW::@runtime stack_configuration : [4096]\n"
    nested = "module @VPU.SW {\nfunc.func private @other()\n}\n" + runtime + "func.func @main" + inside
    found = document(f"module {{\n{outside}module @inner {{\n{nested}}}\n}}\n")
    assert [item.rule for item in found.check()] == []
    made = vpux.serialize(found)
    assert [item["function"] for item in made["kernels"]] == ["other", "k", "runtime"]
    assert made["invocations"][0]["kernel"] == 1
    assert made["runtime"]["kernel"] == 2


def test_the_old_dialect_has_spaces_and_barriers_of_other_forms() -> None:
    old = "%b = VPURT.ConfigurePhysicalBarrier <0> -> !VPURT.Barrier"
    text = f'func.func @main(%a: memref<8xf16, "CMX_NN">) {{\n{old}\nreturn\n}}'
    (function,) = document(text).functions
    assert function.arguments[0].type is not None
    assert function.arguments[0].type.space == "CMX_NN"


@pytest.mark.parametrize(
    "text", ["/*" * 200_000, "{-#" * 200_000, "foo.bar\n" + "%a,\n" * 20_000, "!a = memref<" + "9x" * 50_000 + "f16>"]
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    started = time.process_time()
    vpux.read(text).check()
    assert time.process_time() - started < 5


def test_lists_that_double_through_aliases_are_refused() -> None:
    aliases = "#a0 = []\n" + "".join(f"#a{n + 1} = [#a{n}, #a{n}]\n" for n in range(60))
    with pytest.raises(ProgramError, match="more than 65536 values") as caught:
        run(aliases + called("softmax", [F16], F16, "#a60"))
    assert caught.value.rule == "X046"
    assert flatten([1, [2, (3, [])], 4]) == [1, 2, 3, 4]


def test_a_layout_of_another_dialect_is_not_passed_over() -> None:
    of = "memref<8xf16, #VPUIP.Other<affine_map<(d0) -> (d0)>>, @DDR>"
    with pytest.raises(UnsupportedError) as caught:
        run(f"func.func @main() {{\n%a = memref.alloc() : {of}\nreturn\n}}")
    assert caught.value.what == "type:VPUIP.Other"


DYNAMIC = """module @VPU.SW {{
  func.func private @k() attributes {{VPU.kernel_code = "k.cpp", VPU.kernel_entry = "{entry}"}}
}}
func.func @main(%a: memref<2x3xf32>, %s: memref<2xsi32>, %b: memref<2x3xf32>, %c: memref<2x3xf32>) -> memref<2x3xf32> {{
  %o = memref.alloc() : memref<2x3xf32>
  %t = memref.alloc() : memref<2xsi32>
  VPUIP.SW.Kernel {{dynamicInputShapesMap = array<i32: 0{more}>, dynamicOutputShapesMap = array<i32: 0>}}
    @VPU.SW::@k inputs({ins}) dynamicInputShapes(%s : memref<2xsi32>) outputs(%o as %y: memref<2x3xf32>)
    dynamicOutputShapes(%t : memref<2xsi32>) on tile 0 {{
    VPUIP.SW.Kernel.run {{attrs = [{attributes}]}}({names}, %y)
  }}
  return %o : memref<2x3xf32>
}}
"""


def dynamic(entry: str, attributes: str, inputs: int) -> str:
    ins = ", ".join(f"%{name} as %x{name}: memref<2x3xf32>" for name in "ab"[:inputs])
    names = ", ".join(f"%x{name}" for name in "ab"[:inputs])
    return DYNAMIC.format(entry=entry, attributes=attributes, ins=ins, names=names, more=", -1" * (inputs - 1))


@pytest.mark.parametrize(
    ("entry", "attributes", "inputs", "dims", "wanted"),
    [
        ("activation_relu", "", 1, (2, 1), [1, 2, 0, 0, 0, 0]),
        ("cum_sum", "0, 0, 0", 1, (3, 2), [1, 3, 6, 4, 9, 15]),
        ("cum_sum", "0, 0, 0", 1, (2, 1), None),  # no rule for its shape: the bound, which the box does not fill
        ("eltwise_add", "", 2, (3, 2), [2, 4, 6, 8, 10, 12]),
        ("eltwise_add", "", 2, (3, 1), None),  # the sum has two rows, the first input one
    ],
)
def test_the_shape_of_a_dynamic_output(
    entry: str, attributes: str, inputs: int, dims: tuple[int, int], wanted: list[int] | None
) -> None:
    text = dynamic(entry, attributes, inputs)
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    if wanted is not None:
        assert out(text, i0=x, i1=np.array(dims, np.int32), i2=x) == wanted
        return
    with pytest.raises(ProgramError) as caught:
        run(text, i0=x, i1=np.array(dims, np.int32), i2=x)
    assert caught.value.rule == "X046"


@pytest.mark.parametrize(
    ("source", "target", "given", "wanted"),
    [
        ("ui64", "si64", [2**64 - 1, 5], [2**63 - 1, 5]),
        ("ui64", "f64", [2**63, 5], [2.0**63, 5.0]),
        ("ui8", "si8", [255, 5], [127, 5]),
        ("si8", "ui16", [-3, 5], [0, 5]),
        ("f32", "ui64", [1.8e19, -1.0], [int(np.float32(1.8e19)), 0]),
    ],
)
def test_conversions_saturate(source: str, target: str, given: list[float], wanted: list[float]) -> None:
    numpy = {"ui64": np.uint64, "ui8": np.uint8, "si8": np.int8, "f32": np.float32}[source]
    text = called("convert", [f"memref<2x{source}>"], f"memref<2x{target}>")
    assert out(text, i0=np.array(given, numpy)) == wanted


def test_a_permutation_of_other_rank_is_a_fault() -> None:
    three = "memref<2x2x2xf16>"
    text = f"""func.func @main(%a: {three}) -> {three} {{
  %o = memref.alloc() : {three}
  %r = VPUIP.PermuteDMA {{mem_perm = affine_map<(a, b) -> (b, a)>}}
    inputs(%a : {three}) outputs(%o : {three}) -> {three}
  return %r : {three}
}}
"""
    with pytest.raises(ProgramError) as caught:
        run(text)
    assert caught.value.rule == "X046"


def test_arguments_of_one_function_are_shown_beside_a_broken_one(tmp_path: Path) -> None:
    from buda_emu.app.cli.main import main

    path = tmp_path / "two.mlir"
    broken = "func.func @broken() {\n%b = VPURT.ConfigureBarrier<64> -> !VPURT.Barrier\nreturn\n}\n"
    path.write_text(called("activation_relu", [F16], F16) + broken)
    assert main(["vpux", "args", str(path), "--json"]) == 0
    assert main(["vpux", "args", str(path), "--function", "broken"]) == 2


@pytest.mark.parametrize("item", [(0, "fixed", 16, 5), (True, "fixed", 16), (0, "aligned", True), (0,)])
def test_what_is_no_requirement_is_refused(item: tuple[object, ...]) -> None:
    with pytest.raises(HostError):
        vpux.layout.StrideReqs([item])


@pytest.mark.parametrize(("scalar", "abi"), [("x", 36), (("f16", "x"), 32), (("i32", 1.5), 32), (1 << 64, 36)])
def test_what_is_no_scalar_is_refused(scalar: Any, abi: Any) -> None:
    with pytest.raises(HostError):
        pack([], [scalar], abi=abi)
