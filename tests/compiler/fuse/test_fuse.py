"""Netlist ops put together: what becomes of them, and that no value changes."""

import numpy as np
import pytest

from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.fuse.chains import fuse_chains
from buda_emu.compiler.fuse.epilogues import fuse_activation, fuse_bias, fuse_relu
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.lower.tiles import SubOp, TileGraph, TileOp, Use
from buda_emu.compiler.passes.clean import dce
from buda_emu.compiler.passes.folding import fold_scale_bias
from buda_emu.compiler.pipeline import core_graph
from buda_emu.compiler.search.placer import place
from buda_emu.compiler.target import Target
from fused_tiles import fuse

TARGET = Target.from_names("wormhole_b0", "Float16_b", "HiFi3")
ONE = (1, 1, 1)


def tiles(*ops, outputs=None):
    """A graph of one-tile ops written (name, type, *operands); constants and inputs are any other names."""
    made = TileGraph()
    for name, type, *operands in ops:
        uses = [item if isinstance(item, Use) else Use(item) for item in operands]
        made.ops[name] = TileOp(name, type, uses, ONE, source=name)
    return made


def constant(graph, name, values):
    from buda_emu.compiler.lower.tiles import Constant

    graph.constants[name] = Constant(name, np.asarray(values, np.float32))


def shown(graph):
    """name = type(operands)"""
    return [f"{op.name} = {op.type}({', '.join(use.source for use in op.uses)})" for op in graph.ops.values()]


def test_a_row_behind_a_product_becomes_its_bias():
    graph = tiles(("p", "matmul", "x", "w"), ("y", "add", "row", "p"))
    constant(graph, "row", np.broadcast_to(np.arange(32), (1, 32, 32)))
    fuse_bias(graph)
    assert shown(graph) == ["y = matmul(x, w, row)"]
    assert graph.ops["y"].attrs == {"bias": True}
    assert graph.ops["y"].sources == ("p", "y")


def spread_row(left, *tms):
    """A row, behind `tms`, that a product with `left` copies into all rows, added to a product in every slice."""
    spread = Use("m", (("broadcast", "z", 1),))
    graph = tiles(("p", "matmul", "x", "w"), ("m", "matmul", "left", Use("row", tms)), ("y", "add", "p", spread))
    graph.ops["m"].inner = 1
    constant(graph, "left", left[None])
    return fuse_bias(graph)


def test_a_row_that_ones_copy_into_all_rows_becomes_the_bias_and_is_not_copied():
    left = np.zeros((32, 32))
    left[:, 0] = 1
    graph = spread_row(left)
    assert shown(graph) == ["y = matmul(x, w, row)"]
    assert graph.ops["y"].uses[2].tms == (("broadcast", "z", 1),)
    assert len(spread_row(left, ("transpose",)).ops) == 3, "a product transposes no third operand"
    left[3, 1] = 1
    assert len(spread_row(left).ops) == 3


@pytest.mark.parametrize("reader", ["add", "exp"])
def test_a_term_that_is_no_row_or_is_not_alone_stays(reader):
    graph = tiles(("p", "matmul", "x", "w"), ("y", "add", "p", "row"), ("z", reader, "p", "p"))
    constant(graph, "row", np.broadcast_to(np.arange(32), (1, 32, 32)))
    assert len(fuse_bias(graph).ops) == 3
    graph = tiles(("p", "matmul", "x", "w"), ("y", "add", "p", "row"))
    constant(graph, "row", np.arange(1024).reshape(1, 32, 32))
    assert len(fuse_bias(graph).ops) == 2


def test_a_clamp_becomes_the_packers():
    graph = tiles(("s", "add", "x", "y"), ("z", "nop", "s"), ("u", "nop", "z"))
    for name in "zu":
        graph.ops[name].attrs = {"relu_en": True, "relu_threshold": 1.0, "relu_mode": "min"}
    fuse_relu(graph)
    assert shown(graph) == ["z = add(x, y)", "u = nop(z)"]  # one clamp each
    assert graph.ops["z"].attrs["relu_threshold"] == 1.0


def test_gelu_behind_a_product_runs_there():
    graph = fuse_activation(tiles(("p", "matmul", "x", "w"), ("y", "gelu", "p")))
    assert shown(graph) == ["y = matmul(x, w)"]
    assert graph.ops["y"].attrs == {"sfpu_op": "gelu"}


def test_a_chain_becomes_a_fused_op():
    graph = tiles(("d", "subtract", "x", "m"), ("q", "square", "d"), ("y", "multiply", "q", "d"))
    fuse_chains(graph, TARGET)
    assert shown(graph) == ["y = fused_op(x, m)"]
    assert graph.ops["y"].steps == (
        SubOp("d", "subtract", ("input0", "input1"), "intermed0"),
        SubOp("q", "square", ("intermed0",), "dest"),
        SubOp("y", "multiply", ("dest", "intermed0"), "output", ("intermed0",)),
    )


def test_a_tensor_that_is_read_twice_is_one_operand():
    graph = fuse_chains(tiles(("d", "subtract", "x", "x"), ("y", "add", "d", "x")), TARGET)
    assert shown(graph) == ["y = fused_op(x)"]
    assert graph.ops["y"].steps[0].inputs == ("input0", "input0")


def test_what_others_read_is_turned_or_has_another_shape_is_not_fused():
    turned = tiles(("d", "exp", Use("x", (("transpose",),))), ("y", "multiply", "d", "x"))
    assert len(fuse_chains(turned, TARGET).ops) == 2
    read = tiles(("d", "square", "x"), ("y", "multiply", "d", "x"), ("p", "matmul", "d", "w"))
    assert len(fuse_chains(read, TARGET).ops) == 3
    spread = tiles(("d", "square", "x"), ("y", "multiply", Use("d", (("broadcast", "r", 2),)), "x"))
    spread.ops["y"].shape = (1, 2, 1)
    assert len(fuse_chains(spread, TARGET).ops) == 2


def test_an_exponential_ends_a_fused_op_and_a_maximum_never_touches_dest():
    graph = tiles(("d", "subtract", "x", "m"), ("e", "exp", "d"), ("y", "multiply", "e", "x"))
    assert shown(fuse_chains(graph, TARGET)) == ["e = fused_op(x, m)", "y = multiply(e, x)"]
    graph = fuse_chains(tiles(("d", "subtract", "x", "m"), ("e", "maximum", "d", "z"), ("y", "tanh", "e")), TARGET)
    assert [step.output for step in graph.ops["y"].steps] == ["intermed0", "intermed1", "output"]


def test_grayskull_reads_dest_as_operand_0_only():
    def made(arch):
        graph = tiles(("d", "square", "x"), ("y", "subtract", "m", "d"))
        return fuse_chains(graph, Target.from_names(arch, "Float16_b", "HiFi3")).ops["y"].steps[0].output

    assert made("grayskull") == "intermed0"
    assert made("blackhole") == "dest"


def test_no_fused_op_has_more_operands_than_a_core_has_streams():
    ops = [(f"a{k}", "add", f"a{k - 1}" if k else "x", f"c{k}") for k in range(20)]
    graph = fuse_chains(tiles(*ops), TARGET)
    assert all(len(op.uses) <= 8 for op in graph.ops.values())
    assert sum(len(op.steps) or 1 for op in graph.ops.values()) == 20


def test_factors_and_terms_of_channels_go_into_weights_and_bias():
    b = Builder(Graph("g"), decompose=True)
    x, rng = b.input("x", (2, 3, 5, 5), "float32"), np.random.default_rng(0)
    w = b.constant(rng.standard_normal((4, 3, 3, 3), np.float32))
    row = [b.constant(rng.standard_normal((4, 1, 1), np.float32)) for _ in range(3)]
    y = b.conv(x, w, strides=(1, 1), pads=((0, 0), (0, 0)), dilations=(1, 1))
    last = b.add(b.multiply(b.add(y, row[0]), row[1]), row[2])
    b.graph.outputs = [Output("y", last.name, "float32")]
    found = dce(fold_scale_bias(b.graph))
    assert [node.op for node in found if node.op not in ("input", "constant")] == ["conv", "add"]
    from buda_emu.compiler.parted import evaluate

    value = {"x": rng.standard_normal((2, 3, 5, 5), np.float32)}
    want = evaluate(b.graph, value)[last.name]
    np.testing.assert_allclose(evaluate(found, value)[last.name], want, rtol=1e-4, atol=1e-4)


def test_a_term_that_rounds_stays_by_itself():
    b = Builder(Graph("g"), decompose=True)
    x = b.input("x", (2, 3), "float32")
    y = b.matmul(x, b.constant(np.eye(3, dtype=np.float32)))
    large = 1.5 * 2.0**23
    last = b.subtract(b.add(b.add(y, b.constant(np.full(3, 0.75, np.float32))), large), large)
    b.graph.outputs = [Output("y", last.name, "float32")]
    kinds = [node.op for node in dce(fold_scale_bias(b.graph)) if node.op not in ("input", "constant")]
    assert kinds == ["matmul", "add", "add", "subtract"]


@pytest.mark.parametrize("arch", ["wormhole_b0", "grayskull", "blackhole"])
def test_values_are_the_same_with_and_without(arch):
    b = Builder(Graph("g"), decompose=False)
    x, rng = b.input("x", (33, 40), "float32"), np.random.default_rng(0)
    h = b.matmul(x, b.constant(rng.standard_normal((40, 50), np.float32)))
    h = b.relu(b.add(h, b.constant(rng.standard_normal(50, np.float32))))
    h = b.softplus(b.hard_swish(b.mish(h)))
    last = b.layer_norm(b.maximum(b.erf(h), 0.25), rank=1, epsilon=1e-3)
    graph = b.graph
    graph.outputs = [Output("y", last.name, "float32")]
    graph = core_graph(graph)
    target, inputs = Target.from_names(arch, "Float16_b", "HiFi3"), {"x": rng.standard_normal((33, 40), np.float32)}
    found = []
    for change in (lambda made, _: made, fuse):
        compiled = CompiledModel(graph, place(change(lower(graph, target), target), target), "g")
        assert compiled.check(strict=True) == ()
        found.append((len(compiled.placement.ops), compiled.run(inputs)[0], compiled.run(inputs, "device")[0]))
        compiled.close()
    (many, plain, plain_device), (few, fused, fused_device) = found
    assert few < many / 2
    np.testing.assert_array_equal(fused, plain)
    np.testing.assert_allclose(fused_device, plain_device, rtol=0.1, atol=0.1)


def test_what_is_read_twice_is_one_operand_of_a_fused_op():
    graph = fuse_chains(tiles(("s", "multiply", "x", "x"), ("y", "add", "s", "z")), TARGET)
    assert shown(graph) == ["y = fused_op(x, z)"]


def test_ops_of_two_programs_are_not_put_together():
    graph = tiles(("p", "matmul", "x", "w"), ("s", "multiply", "p", "z"), ("y", "nop", "s"))
    constant(graph, "row", np.broadcast_to(np.arange(32), (1, 32, 32)))
    graph.ops["y"].program = "bwd_0"
    graph.ops["y"].attrs["relu_en"] = True
    assert shown(fuse(graph, TARGET)) == ["s = fused_op(z, x, w)", "y = nop(s)"]
