"""Who reads a maximum spreads its column over the tile itself."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import buda_emu as be
from buda_emu.compiler.fuse.columns import fuse_spreads
from buda_emu.compiler.lower.tiles import Constant, SubOp, TileGraph, TileOp, Use

ROW_OF_ONES = np.zeros((1, 32, 32), np.float32)
ROW_OF_ONES[:, 0] = 1


def with_maximum(*ops, ones=ROW_OF_ONES):
    """Ops written (name, type, *operands) of two slices and a column, the last four columns wide; `m` and `n` are
    maxima."""
    made = TileGraph()
    made.constants["ones"] = Constant("ones", ones, "picker")
    for name in "mn":
        made.ops[name] = TileOp(name, "reduce", [Use("x")], (2, 1, 1), {"dim": "c", "type": "max"}, 4, source=name)
    for name, type, *operands in ops:
        spread = type == "matmul"
        uses = [Use(operands[0]), Use("ones", (("broadcast", "z", 2),))] if spread else [Use(item) for item in operands]
        made.ops[name] = TileOp(name, type, uses, (2, 1, 1), inner=int(spread), source=name)
    *_, last = made.ops.values()
    last.shape = (2, 1, 4)
    last.uses = [Use(use.source, (("broadcast", "c", 4),)) if use.source != "x" else use for use in last.uses]
    return made


def test_what_takes_a_maximum_away_spreads_it():
    made = fuse_spreads(with_maximum(("s", "matmul", "m"), ("d", "subtract", "x", "s")))
    assert list(made.ops) == ["m", "n", "d"]
    assert made.ops["d"].type == "fused_op"
    assert made.ops["d"].uses == [Use("x"), Use("m", (("broadcast", "c", 4),))]
    assert made.ops["d"].steps == (SubOp("d", "subtract", ("input0", "input1"), "output", spread="c"),)


def test_the_larger_of_two_is_taken_before_it_is_spread():
    made = fuse_spreads(
        with_maximum(
            ("s", "matmul", "m"),
            ("t", "matmul", "n"),
            ("larger", "maximum", "s", "t"),
            ("d", "subtract", "x", "larger"),
        )
    )
    assert list(made.ops) == ["m", "n", "larger.column", "d"]
    assert made.ops["larger.column"].uses == [Use("m"), Use("n")]
    assert made.ops["d"].uses[1].source == "larger.column"


@pytest.mark.parametrize("reader", [("d", "subtract", "s", "x"), ("d", "maximum", "x", "s"), ("d", "exp", "s")])
def test_what_cannot_spread_it_reads_the_product_with_ones(reader):
    assert list(fuse_spreads(with_maximum(("s", "matmul", "m"), reader)).ops) == ["m", "n", "s", "d"]


def test_another_product_stays():
    made = with_maximum(("s", "matmul", "m"), ("d", "subtract", "x", "s"), ones=2 * ROW_OF_ONES)
    assert list(fuse_spreads(made).ops) == ["m", "n", "s", "d"]


@pytest.mark.parametrize("arch", ["wormhole_b0", "grayskull"])
@pytest.mark.parametrize("precision", ["ideal", "format", "device"])
def test_softmax_is_right_in_every_precision(arch, precision):
    node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 40, 70]) for name in "xy")
    graph = helper.make_graph([node], "softmax", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    made = be.compile(model, arch=arch, effort="low")
    assert "tile_broadcast: c" in made.text
    assert not any(name.endswith("spread") for name in made.placement.ops)
    given = np.random.default_rng(0).standard_normal((2, 40, 70)).astype(np.float32)
    (found,) = made(given, precision=precision)
    expected = np.exp(given - given.max(-1, keepdims=True))
    expected /= expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if precision == "ideal" else 0.1, atol=1e-6)
