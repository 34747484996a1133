"""Integers near real ones, on all chips and in all precisions, against numpy."""

import numpy as np
import pytest

import buda_emu as be

onnx = pytest.importorskip("onnx")
helper, numpy_helper, TYPES = onnx.helper, onnx.numpy_helper, onnx.TensorProto
ARCHS = ("grayskull", "wormhole_b0", "blackhole")
PRECISIONS = ("ideal", "format", "device")
ROUNDED = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "Cast": np.trunc}


def model(nodes, inputs, output=TYPES.FLOAT, **held):
    info = helper.make_tensor_value_info
    shape = next(iter(inputs.values())).shape
    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in inputs.items()],
        [info("y", output, shape)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def rounding(op, x):
    """A model that rounds; a cast there and back."""
    if op != "Cast":
        return model([helper.make_node(op, ["x"], ["y"])], {"x": x})
    there = helper.make_node("Cast", ["x"], ["whole"], to=TYPES.INT64)
    return model([there, helper.make_node("Cast", ["whole"], ["y"], to=TYPES.FLOAT)], {"x": x})


def numbers(df):
    """All that a chip's operand can be in a format, but what the device shows as an infinity, [rows, 1024]."""
    if df == "Float16":
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
        x = x[np.isfinite(x) & ((np.abs(x) >= 2**-14) | (x == 0))]
    else:
        bits = 3 if df == "Float32" else 0
        x = (np.arange(1 << 16 + bits, dtype=np.uint32) << (16 - bits)).view(np.float32)
        x = x[(np.abs(x) < 2.0**99) & ((np.abs(x) >= 2.0**-126) | (x == 0))]
    return np.concatenate([x, np.zeros(-len(x) % 1024, np.float32)]).reshape(-1, 1024)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("op", ROUNDED)
def test_all_numbers_of_8_bits_are_rounded_right(arch, op):
    x = numbers("Float16_b")
    compiled = be.compile(rounding(op, x), arch=arch, effort="low")
    assert compiled.check() == ()
    for precision in PRECISIONS:
        np.testing.assert_array_equal(compiled(x, precision=precision)[0], ROUNDED[op](x), precision)


@pytest.mark.parametrize(
    ("arch", "df"), [("grayskull", "Float16"), ("wormhole_b0", "Float16"), ("blackhole", "Float32")]
)
@pytest.mark.parametrize("op", ROUNDED)
def test_of_11_bits_a_few_are_taken_for_their_neighbour(arch, df, op):
    x = numbers(df)
    compiled = be.compile(rounding(op, x), arch=arch, df=df, effort="low")
    assert compiled.check() == ()
    want = ROUNDED[op](x)
    for precision in ("ideal", "format"):
        np.testing.assert_array_equal(compiled(x, precision=precision)[0], want, precision)
    got = compiled(x, precision="device")[0]
    off = got != want
    assert np.count_nonzero(off) < 1e-3 * x.size
    off &= np.abs(want) < 2048  # greater ones are as near, and mean nothing: all are whole
    neighbour = x[off].view(np.uint32) + np.uint32(1 << 13)  # one unit of the 11th bit away from 0
    np.testing.assert_array_equal(got[off], ROUNDED[op](neighbour.view(np.float32)))


@pytest.mark.parametrize("df", ["Float16_b", "Float16", "Float32", "Bfp8", "Bfp8_b"])
@pytest.mark.parametrize("op", ROUNDED)
def test_ideal_rounds_every_number_of_float32(df, op):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((40, 50)) * 10.0 ** rng.integers(-6, 7, (40, 50))).astype(np.float32)
    x[0] = np.arange(-25, 25) / 2 + 1e-6
    x[1, :4] = (2**22 - 0.5, -(2**22) + 0.5, 2**21 + 0.5, 2**21 + 1.5)
    x = np.where(np.abs(x) < 2**22, x, 1).astype(np.float32)
    for arch in ("grayskull", "wormhole_b0"):
        compiled = be.compile(rounding(op, x), arch=arch, df=df, effort="low")
        np.testing.assert_array_equal(compiled(x)[0], ROUNDED[op](x), arch)


@pytest.mark.parametrize(
    ("arch", "df"),
    [("grayskull", "Float16_b"), ("grayskull", "Float16"), ("wormhole_b0", "Bfp8_b"), ("blackhole", "Float32")],
)
def test_quotients_and_rests_of_whole_numbers(arch, df):
    x = np.arange(-128, 128, dtype=np.int32).reshape(4, 64)
    x[:, 0] = -127  # numbers of 7 bits, beside others of 7 bits
    for divisor in (7, -5):
        held = {"k": np.int32(divisor)}
        for node, want in (
            (helper.make_node("Div", ["x", "k"], ["y"]), np.trunc(x / divisor)),
            (helper.make_node("Mod", ["x", "k"], ["y"]), np.mod(x, divisor)),
            (helper.make_node("Mod", ["x", "k"], ["y"], fmod=1), np.fmod(x, divisor)),
        ):
            compiled = be.compile(model([node], {"x": x}, TYPES.INT32, **held), arch=arch, df=df, effort="low")
            for precision in PRECISIONS:
                got = compiled(x, precision=precision)[0]
                np.testing.assert_array_equal(got, want, f"{node.op_type} {divisor} {precision}")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("kind", "zero"), [("int8", 0), ("uint8", 128), ("uint8", 7)])
def test_a_quantised_tensor_holds_the_models_whole_numbers(arch, kind, zero):
    """Numbers of 8 bits by a scale that is a power of 2, so that the quotient is exact; those that the host reads."""
    x = numbers("Float16_b")
    x = x[(np.abs(x) < 64).all(1)]
    held = {"s": np.float32(0.25), "z": np.array(zero, kind)}
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    made = model([node], {"x": x}, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), **held)
    bounds = np.iinfo(kind)
    want = np.clip(np.rint(x * 4) + zero, bounds.min, bounds.max)
    compiled = be.compile(made, arch=arch, effort="low")
    for precision in PRECISIONS:
        np.testing.assert_array_equal(compiled(x, precision=precision)[0], want, precision)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("op", ["Equal", "GreaterOrEqual", "LessOrEqual", "Greater", "Less"])
def test_what_is_equal_is_so_wherever_a_comparison_is_packed(arch, fuse, op):
    """The packer's relu drops what is just its threshold (DEVICE_NUMERICS 4.3)."""
    x, y = np.mgrid[-16:16, -16:16].astype(np.float32)
    nodes = [helper.make_node(op, ["x", "z"], ["c"]), helper.make_node("Cast", ["c"], ["y"], to=TYPES.FLOAT)]
    compiled = be.compile(model(nodes, {"x": x, "z": y}), arch=arch, fuse=fuse, effort="low")
    want = {
        "Equal": x == y,
        "GreaterOrEqual": x >= y,
        "LessOrEqual": x <= y,
        "Greater": x > y,
        "Less": x < y,
    }[op]
    for precision in PRECISIONS:
        np.testing.assert_array_equal(compiled(x, y, precision=precision)[0], want, precision)
