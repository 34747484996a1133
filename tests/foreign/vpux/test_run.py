"""Runs: schedule, barriers, memory, movement, races; deadlocks and faults say why."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.foreign import vpux
from buda_emu.foreign.vpux.execute.invocation import device_address
from buda_emu.foreign.vpux.execute.memory import make_stimulus
from buda_emu.foreign.vpux.execute.run import RunResult
from buda_emu.foreign.vpux.report import barrier_pressure
from buda_emu.foreign.vpux.schedule import CostModel
from buda_emu.support.errors import HostError, ProgramError, UnsupportedError, VpuxError
from vpux_documents import (
    BARRIERS,
    BUFFERS,
    CLAMP,
    CMX,
    DDR,
    LOAD,
    NETWORK,
    STORE,
    barrier,
    buffer,
    changed,
    dma,
    document,
    function,
    kernel,
    module,
    task,
)

X = np.linspace(-4, 4, 512, dtype=np.float16).reshape(1, 16, 4, 8)


def run(text: str = NETWORK, **options: Any) -> RunResult:
    return vpux.run(document(text), inputs=options.pop("inputs", {0: X}), **options)


def test_load_clamp_store() -> None:
    result = run()
    (out,) = result.outputs
    assert out.tolist() == np.clip(X, -1, 2.5).tolist()
    assert [(item.unit, item.start, item.end) for item in result.tasks] == [
        ("DMA:0", 0, 1),
        ("SHAVE_ACT:0", 1, 2),
        ("DMA:0", 2, 3),
    ]
    assert [(b.name, b.id, b.producers, b.consumers, b.completed) for b in result.barriers] == [
        ("%b0", 0, 1, 1, 1),
        ("%b1", 1, 1, 1, 2),
    ]
    assert result.makespan == 3
    assert result.races == []
    assert result.raw("%in") == X.tobytes()
    assert len(result.arguments[1][0]) == 176
    with pytest.raises(HostError, match="did you mean '%in'"):
        result.raw("%inn")


def test_units_of_40xx_have_channels() -> None:
    assert [item.unit for item in run(arch="40XX").tasks] == ["DMA:0:DDR", "SHAVE_ACT:0", "DMA:0:CMX"]
    chosen = changed("NNDMA", "NNDMA {channelType = 1 : i64, port = 1 : i64}")
    assert run(chosen, arch="40XX").tasks[0].unit == "DMA:1:CMX"


def test_inputs_must_fit() -> None:
    for bad, text in (({0: X[0]}, "shape"), ({1: X}, "inputs 0 to 0"), ({0: X.astype(complex)}, "float16")):
        with pytest.raises(HostError, match=text):
            run(inputs=bad)


def test_whole_numbers_are_given_to_whole_numbers_of_another_width() -> None:
    of = "memref<2x4xui8, @DDR>"
    text = document(module(function(task(dma("%arg0", "%arg1", of, of)), of)))
    x = np.arange(8).reshape(2, 4)
    for values in (x.astype(np.int32), x.astype(np.uint8)):
        assert vpux.run(text, inputs={0: values}).outputs[0].tolist() == x.tolist()
    with pytest.raises(HostError, match="input %arg0 holds uint8, not float32"):
        vpux.run(text, inputs={0: x.astype(np.float32)})


def test_spaces_of_one_kind_lie_apart() -> None:
    spaces = "NetworkInput0", "NetworkInput1", "NetworkOutput0", "NetworkOutput1"
    addresses = [device_address(space, 16, False) for space in spaces]
    assert addresses == [0x90000010, 0x91000010, 0xA0000010, 0xA1000010]


def test_what_is_not_given_is_the_stimulus_however_it_is_drawn() -> None:
    of = document().function("main").arguments[0].type
    assert of is not None
    whole = np.random.Generator(np.random.PCG64(__import__("zlib").crc32(b"main:0"))).integers(-512, 513, of.shape)
    assert make_stimulus("main", 0, of).tolist() == (whole / 128.0).astype(np.float16).tolist()


def test_refused_and_unreadable_documents() -> None:
    with pytest.raises(VpuxError) as caught:
        run(changed("ConfigureBarrier<0>", "ConfigureBarrier<64>"))
    assert caught.value.diagnostics[0].rule == "X028"
    with pytest.raises(VpuxError, match="X001"):
        run("func.func @main(")
    with pytest.raises(HostError, match="did you mean 'main'"):
        run(function="mian")
    with pytest.raises(HostError, match=r"split 7 of .* could be read; splits with functions: 0$"):
        document().function(split=7)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (changed("return %arg1", "%x = Some.Op %arg0\nreturn %arg1"), "Some.Op"),
        (module(function(""), entry="nothing"), None),
        (NETWORK.replace('"activation_clamp"', '"no_such_kernel"'), "kernel:no_such_kernel"),
        (changed(BUFFERS, BUFFERS + "\n%t = VPUIP.NCEClusterTask { x }"), "VPUIP.NCEClusterTask"),
        (changed(BUFFERS, BUFFERS + "\n" + buffer("%s", 9, CMX).replace("-> ", "{swizzlingKey = 5 : i64} -> ")),
         "type:swizzlingKey"),
        (changed(BUFFERS, BUFFERS + "\n" + buffer("%s", 0, "memref<4xi32, @Register>", "Register")),
         "section:Register"),
        (changed(BUFFERS, BUFFERS + "\n%a = memref.alloc() : memref<1x?xf16>"), "type:dynamic"),
        (changed(BUFFERS, BUFFERS + "\n%a = memref.alloc() : !VPUIP.SparseBuffer<data=memref<1xf16>>"),
         "type:VPUIP.SparseBuffer"),
        (changed(BUFFERS, BUFFERS + "\n%c = const.Declare memref<2xf16> = dense<1.0> : tensor<2xf16>, "
         "[#const.PadWithZero<[0], [1]>]"), "const:PadWithZero"),
        (changed(BUFFERS, BUFFERS + "\n%c = const.Declare memref<2xf16> = dense_resource<blob> : tensor<2xf16>"),
         "const:dense_resource"),
        (changed(BUFFERS, BUFFERS + "\n%a = memref.alloc() : !VPUIP.DistributedBuffer<1x2x3x4xf16, #NHWC, @CMX_NN, "
         '{mode = "SEGMENTED", num_tiles = [1, 1, 2, 1], num_clusters = 2 : i64}>'),
         "type:DistributedBuffer:SEGMENTED"),
        (NETWORK.replace("xf16", "xbf16"), "type:bf16"),
        (changed(LOAD, LOAD.replace("NNDMA", "DecompressDMAOp")), "VPUIP.DecompressDMAOp"),
    ],
)  # fmt: skip
def test_what_is_not_emulated_is_named(text: str, what: str | None) -> None:
    if what is None:
        assert run(text).tasks == []
        return
    with pytest.raises(UnsupportedError) as caught:
        run(text, inputs={})
    assert caught.value.what == what


def test_deadlock_says_who_waits_for_what() -> None:
    with pytest.raises(ProgramError, match=r"X040: deadlock") as caught:
        run(changed(LOAD, LOAD.replace("updates(%b0", "waits(%b1 : !VPURT.Barrier) updates(%b0")))
    assert (caught.value.rule, caught.value.kind) == ("X040", "deadlock")
    assert "barrier %b1" in str(caught.value)
    assert "VPUIP.NNDMA on DMA:0, line" in str(caught.value)


def test_a_number_is_used_again_when_its_tasks_have_ended() -> None:
    again = "\n".join(
        [
            BUFFERS,
            barrier("%b0", 7),
            barrier("%b1", 7),
            LOAD,
            task(dma("%in", "%out", CMX), "%b0"),
            task(dma("%out", "%arg1", CMX, DDR, "port = 1 : i64"), updates="%b1"),
        ]
    )
    result = run(module(function(again)))
    assert [item.start for item in result.tasks] == [0, 1, 2]
    assert result.races == []
    waits = "waits(%b0 : !VPURT.Barrier)"
    both = again.replace(waits, f"{waits} updates(%b1 : !VPURT.Barrier)")
    with pytest.raises(ProgramError, match="previous use of barrier number 7"):
        run(module(function(both)))


def test_races_come_from_the_order_of_waits_and_not_from_times() -> None:
    text = changed(STORE, task(dma("%out", "%arg1", CMX, DDR, "port = 1 : i64")))
    (race, unwritten) = run(text).races
    assert (race.kind, race.first, race.second, race.space, race.address, race.size) == (
        "race",
        1,
        2,
        "CMX0",
        1024,
        1024,
    )
    assert (unwritten.kind, unwritten.second, unwritten.address, unwritten.size) == ("unwritten", 2, 1024, 1024)
    late = changed(BARRIERS, f"{BARRIERS}\n{barrier('%b2', 2)}").replace(
        STORE,
        task(dma("%arg0", "%in", attributes="port = 1 : i64"), updates="%b2")
        + "\n" * 2
        + task(dma("%out", "%arg1", CMX, DDR, "port = 1 : i64"), waits="%b1"),
    )
    assert [item.second for item in run(late).races] == [2, 2]  # load and kernel against the second load


def test_two_kernels_of_a_tile_are_not_ordered_by_their_queue() -> None:
    twice = changed(CLAMP, CLAMP + "\n" + CLAMP)
    (race,) = run(twice).races
    assert (race.first, race.second) == (1, 2)


def test_transfers_between_orders_move_in_memory_order() -> None:
    nhwc = CMX.replace("f16,", "f16, #NHWC,")
    load = LOAD.replace(CMX, nhwc)
    clamp = CLAMP.replace(f"%in as %x0: {CMX}", f"%in as %x0: {nhwc}").replace(f" : {CMX}, ", f" : {nhwc}, ")
    buffers = BUFFERS.replace(CMX, nhwc, 1)
    result = run(module(function("\n".join([buffers, BARRIERS, load, clamp, STORE]))))
    assert result.raw("%in") == X.tobytes()
    moved = X.reshape(1, 4, 8, 16).transpose(0, 3, 1, 2)
    assert result.outputs[0].tolist() == np.clip(moved, -1, 2.5).tolist()


def test_a_descriptor_moves_bytes_plane_by_plane() -> None:
    of = "memref<32xui8, @DDR>"
    given = (
        "dma_descriptor = #VPUIP.DMADescriptorAttr<numPlanes = 2 : i64, len = 6 : i64, srcWidth = 4 : i64, srcStride = "
        "8 : i64, srcPlaneStride = 1 : i64, dstWidth = 0 : i64, dstStride = 0 : i64, dstPlaneStride = 16 : i64>"
    )
    text = module(function(task(dma("%arg0", "%arg1", of, of, given).replace("NNDMA", "SpaceToDepthDMA")), of))
    x = np.arange(32, dtype=np.uint8)
    (out,) = vpux.run(document(text), inputs={0: x}).outputs
    want = np.zeros(32, np.uint8)
    for plane, k in itertools.product(range(2), range(6)):
        want[plane * 16 + k] = x[plane + k // 4 * 8 + k % 4]
    assert out.tolist() == want.tolist()
    with pytest.raises(ProgramError, match="srcWidth of its descriptor is not an integer"):
        vpux.run(document(text.replace("srcWidth = 4 : i64", "srcWidth = true")), inputs={0: x})


def test_convert_permute_and_broadcast() -> None:
    f32 = DDR.replace("f16", "f32")
    text = f"func.func @main(%arg0: {f32}, %arg1: {DDR}) -> {DDR} {{\n" + "\n".join(
        [task(dma("%arg0", "%arg1", f32, DDR).replace("NNDMA", "ConvertDMA")), f"return %arg1 : {DDR}", "}"]
    )
    x = X.astype(np.float32) / 3
    assert run(text, inputs={0: x}).outputs[0].tolist() == x.astype(np.float16).tolist()
    wide = "!VPUIP.DistributedBuffer<1x16x4x8xf16, affine_map<(a, b, c, d) -> (a, b, c, d)>, @CMX_NN, {mode = "
    wide += '"DUPLICATED", num_clusters = 2 : i64}>'
    one = CMX.replace("CMX_NN, 0", "CMX_NN, 1")
    text = module(
        function(
            "\n".join(
                [
                    buffer("%d", 64, wide, index="[0, 1]"),
                    buffer("%c", 64, one, index="[1]"),
                    task(dma("%arg0", "%d", DDR, wide)),
                    task(dma("%c", "%arg1", one, DDR)),
                ]
            )
        )
    )
    assert run(text).outputs[0].tolist() == X.tolist()


@pytest.mark.parametrize(
    ("content", "want"),
    [
        ("dense<-1.5> : tensor<2x2xf16>", [-1.5] * 4),
        ('dense<"0x003C004000420044"> : tensor<2x2xf16>, [#const.Reorder<#NHWC>]', [1, 2, 3, 4]),
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xsi8>, [#const.CastElemType<f16>]", [1, 2, 3, 4]),
        ("dense<[1., 2., 3., 4.]> : tensor<4xf32>, [#const.Reshape<[2, 2]>]", [1, 2, 3, 4]),
        ("dense<0x3C00> : tensor<2x2xf16>", [1] * 4),
        ("dense<0x3F800000> : tensor<2x2xf32>, [#const.ConvertElemType<f16>]", [1] * 4),
    ],
)
def test_constants(content: str, want: list[float]) -> None:
    of, ddr = "memref<2x2xf16, affine_map<(a, b) -> (b, a)>>", "memref<2x2xf16, affine_map<(a, b) -> (b, a)>, @DDR>"
    text = module(function(f"%c = const.Declare {of} = {content}\n" + task(dma("%c", "%arg1", of, ddr)), ddr))
    assert vpux.run(document(text)).outputs[0].reshape(-1).tolist() == want


DYNAMIC = module(
    "func.func @main(%arg0: {0}, %arg1: {1}, %arg2: {0}, %arg3: {1}) -> ({0}, {1}) {{\n{2}\n"
    "return %arg2, %arg3 : {0}, {1}\n}}".format(
        "memref<1x2x3x4xf16, #NHWC, [@CMX_NN, 0]>",
        "memref<4xsi32, [@CMX_NN, 0]>",
        kernel(
            [("%arg0", "memref<1x2x3x4xf16, #NHWC, [@CMX_NN, 0]>")],
            [("%arg2", "memref<1x2x3x4xf16, #NHWC, [@CMX_NN, 0]>")],
            extra="dynamicInputShapesMap = array<i32: 0>, dynamicOutputShapesMap = array<i32: 0>",
        ).replace(
            "on tile 0",
            "dynamicInputShapes(%arg1 : memref<4xsi32, [@CMX_NN, 0]>) "
            "dynamicOutputShapes(%arg3 : memref<4xsi32, [@CMX_NN, 0]>) on tile 0",
            1,
        ),
    ),
    entry="activation_relu",
)


def test_a_kernel_works_on_the_actual_box_and_writes_its_dims() -> None:
    x = np.arange(-12, 12, dtype=np.float16).reshape(1, 2, 3, 4)
    data, dims = vpux.run(document(DYNAMIC), inputs={0: x, 1: np.array([2, 3, 2, 1], np.int32)}).outputs
    want = np.zeros_like(x)
    want[:, :, :2, :3] = np.maximum(x[:, :, :2, :3], 0)
    assert data.tolist() == want.tolist()
    assert dims.tolist() == [2, 3, 2, 1]


@pytest.mark.parametrize("dims", [[3, 3, 2, 1], [2, 5, 3, 1], [-1, 4, 3, 1]])
def test_a_shape_above_its_bound_is_a_fault(dims: list[int]) -> None:
    with pytest.raises(ProgramError, match="X045") as caught:
        vpux.run(document(DYNAMIC), inputs={1: np.array(dims, np.int32)})
    assert caught.value.rule == "X045"


def test_memory_is_bounded() -> None:
    with pytest.raises(ProgramError, match="768 MiB"):
        run(changed(BUFFERS, BUFFERS + "\n%a = memref.alloc() : memref<500000000xf16>"))
    with pytest.raises(ProgramError, match="0 MiB"):
        run(memory_limit=100)
    with pytest.raises(ProgramError, match="below the first byte"):
        run(changed("<1024>", "<-64>"))


def test_durations_of_a_model_and_pressure() -> None:
    result = run(duration=CostModel.from_text("dma_start=10,dma_bytes=64,kernel_start=5,kernel_bytes=32").duration)
    assert [item.duration for item in result.tasks] == [26, 69, 26]
    assert barrier_pressure(result).changes == ((0, 1), (26, 2), (95, 1), (121, 0))
    assert barrier_pressure(result).limit == 32
    for bad in ("speed=3", "dma_bytes=0", "dma_start=x"):
        with pytest.raises(HostError):
            CostModel.from_text(bad)


def test_sequential_functions_of_the_design_documents() -> None:
    text = """func @main(%input: memref<1x3xf32>, %output: memref<1x3xf32>) {
    %temp = alloc : memref<1x3xf32, affine_map<(a, b) -> (b, a)>, /*memory space*/ 1>
    IERT.SoftMax(%input, %temp) {axisInd = 1 : i32}
    linalg.copy(%temp, %output)
    dealloc %temp
    return
}"""
    result = run(text, inputs={0: np.zeros((1, 3), np.float32)})
    np.testing.assert_allclose(result.outputs[0], [[1 / 3] * 3], rtol=1e-6)
    assert [item.unit for item in result.tasks] == ["SEQ", "SEQ"]


def sequential_softmax(attributes: str, shape: str = "2x3x4", op: str = "IE.SoftMax") -> RunResult:
    of = f"tensor<{shape}xf32>"
    text = f"""func.func @main(%x: {of}) -> {of} {{
    %y = {op}(%x) {{{attributes}}} : {of} -> {of}
    return %y : {of}
}}"""
    return run(text, inputs={0: np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)})


@pytest.mark.parametrize("axis", range(-3, 3))
@pytest.mark.parametrize("op", ["IE.SoftMax", "IERT.SoftMax"])
def test_an_axis_of_a_layer_counts_from_either_side(axis: int, op: str) -> None:
    weights = np.exp(np.linspace(-1, 1, 24).reshape(2, 3, 4))
    got = sequential_softmax(f"axisInd = {axis} : i64", op=op).outputs[0]
    np.testing.assert_allclose(got, weights / weights.sum(axis=axis, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("axisInd = 3", "axisInd 3 of 3 dimensions: -3 to 2 are there"),
        ("axisInd = -4", "axisInd -4 of 3 dimensions"),
        ("", "has no axisInd"),
        ("axisInd = 1.0", "axisInd is not an integer"),
        ("axisInd = true", "axisInd is not an integer"),
        ("axisInd = -1, padSize = 5", "5 elements of padding in a dimension of 4"),
    ],
)
def test_axes_that_a_layer_does_not_have(attributes: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        sequential_softmax(attributes)
    assert caught.value.rule == "X046"


def test_padding_of_a_layer_takes_no_part() -> None:
    got = sequential_softmax("axisInd = -1 : i64, padSize = 2 : i64").outputs[0]
    weights = np.exp(np.linspace(-1, 1, 24).reshape(2, 3, 4)[..., :2])
    np.testing.assert_allclose(got[..., :2], weights / weights.sum(axis=-1, keepdims=True), rtol=2e-6)
    assert not got[..., 2:].any()


SIZE = 64


@st.composite
def schedules(draw: st.DrawFn) -> str:
    """Transfers between slots of CMX on two ports, with barriers between some of them."""
    slot = "memref<32xf16, [@CMX_NN, 0]>"
    ddr = "memref<32xf16, @DDR>"
    count = draw(st.integers(2, 7))
    lines = [buffer(f"%s{n}", n * SIZE, slot) for n in range(4)]
    lines += [f"%b{n} = VPURT.DeclareVirtualBarrier -> !VPURT.Barrier" for n in range(count)]
    for n in range(count):
        source = draw(st.sampled_from(["%arg0", "%s0", "%s1", "%s2", "%s3"]))
        target = draw(st.sampled_from(["%s0", "%s1", "%s2", "%s3"]))
        waits = " ".join(f"%b{m}" for m in draw(st.sets(st.integers(0, n - 1), max_size=2))) if n else ""
        port = draw(st.integers(0, 1))
        op = dma(source, target, ddr if source == "%arg0" else slot, slot, f"port = {port} : i64")
        lines.append(task(op, waits, f"%b{n}"))
    lines.append(task(dma("%s0", "%arg1", slot, ddr), " ".join(f"%b{n}" for n in range(count))))
    return module(function("\n".join(lines), ddr))


@settings(deadline=None, max_examples=40)
@given(schedules(), st.integers(0, 1 << 30))
def test_without_races_any_durations_give_the_same_bytes(text: str, seed: int) -> None:
    first = vpux.run(document(text))
    if any(item.kind == "race" for item in first.races):
        return
    chance = random.Random(seed)
    second = vpux.run(document(text), duration=lambda _: chance.randrange(1, 20))
    assert [first.raw(f"%s{n}") for n in range(4)] == [second.raw(f"%s{n}") for n in range(4)]
    assert first.outputs[0].tobytes() == second.outputs[0].tobytes()
    assert not [item for item in second.races if item.kind == "race"]


def test_elements_narrower_than_a_byte_are_compact_bytes() -> None:
    of = "memref<2x4xui4, affine_map<(a, b) -> (b, a)>, @DDR>"
    text = module(function(task(dma("%arg0", "%arg1", of, of)), of))
    x = np.arange(8, dtype=np.uint8).reshape(2, 4)
    (out,) = vpux.run(document(text), inputs={0: x}).outputs
    assert out.tolist() == [0x40, 0x51, 0x62, 0x73]
    (again,) = vpux.run(document(text), inputs={0: out}).outputs
    assert again.tolist() == out.tolist()
