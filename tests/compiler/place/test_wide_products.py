"""Products with more columns than the cores have room for run in slices along t."""

import numpy as np
import pytest

from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.lower import matmul
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.parted import evaluate
from buda_emu.compiler.pipeline import core_graph
from buda_emu.compiler.search.placer import place
from buda_emu.compiler.target import Target
from fused_tiles import fuse


@pytest.mark.parametrize("shape", [(3, 40), (2, 3, 40), (2, 33, 40), (1, 40)])
@pytest.mark.parametrize(("width", "slices"), [(385, 7), (512, 8), (700, 12)])
def test_slices_are_put_side_by_side_again(monkeypatch, shape, width, slices):
    monkeypatch.setattr(matmul, "WIDE", 4 * TILE)
    rng = np.random.default_rng(0)
    b = Builder(Graph("g"), decompose=False)
    x = b.input("x", shape, "float32")
    product = b.matmul(x, b.constant(rng.standard_normal((40, width), np.float32) / 6))
    b.graph.outputs = [Output("y", b.add(product, b.constant(rng.standard_normal(width, np.float32))).name, "float32")]
    graph = core_graph(b.graph)
    target = Target.from_names("wormhole_b0", "Float32", "HiFi4")
    tiles = fuse(lower(graph, target), target)
    (sliced,) = (op for op in tiles.ops.values() if op.name.endswith(".matmul"))
    assert sliced.shape[0] == slices
    compiled = CompiledModel(graph, place(tiles, target), "test")
    assert compiled.check(strict=True) == ()
    inputs = rng.standard_normal(shape, np.float32)
    (got,) = compiled(inputs)
    want = evaluate(graph, {"x": inputs})[graph.outputs[0].value]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("tiles", "slices", "width"), [(344, 4, 88), (1600, 17, 96), (1004, 14, 72), (264, 3, 88), (257, 3, 88)]
)
def test_slices_are_such_as_eight_columns_of_cores_share(tiles, slices, width):
    """With a thirty-second more columns at most, and a short first part: of 20 slices two are one, of 17 none are."""
    assert matmul._count_slices(tiles * TILE, True) == (slices, slices * width * TILE)


@pytest.mark.parametrize(("tiles", "slices", "width"), [(1600, 20, 80), (544, 5, 112), (1280, 10, 128)])
def test_what_an_op_puts_side_by_side_has_the_fewest_columns_and_slices(tiles, slices, width):
    assert matmul._count_slices(tiles * TILE, False) == (slices, slices * width * TILE)


@pytest.mark.parametrize(("after", "slices"), [("nothing", 6), ("factor", 6), ("bias", 3), ("softmax", 3)])
def test_only_slices_that_go_out_as_they_are_have_those_of_one_part(after, slices):
    b = Builder(Graph("g"), decompose=False)
    product = b.matmul(b.input("x", (3, 40), "float32"), b.constant(np.ones((40, 9000), np.float32)))
    last = {
        "nothing": lambda: product,
        "factor": lambda: b.reshape(b.multiply(product, b.constant(np.float32(0.5))), shape=(1, 3, 9000)),
        "bias": lambda: b.add(product, b.constant(np.arange(9000, dtype=np.float32))),
        "softmax": lambda: b.softmax(product),
    }[after]()
    b.graph.outputs = [Output("y", last.name, "float32")]
    tiles = lower(core_graph(b.graph), Target.from_names("wormhole_b0", "Float32", "HiFi4"))
    assert next(op for op in tiles.ops.values() if op.name.endswith(".matmul")).shape[0] == slices


def test_slices_that_are_an_output_go_to_the_host_one_by_one(monkeypatch):
    monkeypatch.setattr(matmul, "WIDE", 4 * TILE)
    rng = np.random.default_rng(0)
    b = Builder(Graph("g"), decompose=False)
    product = b.matmul(b.input("x", (3, 40), "float32"), b.constant(rng.standard_normal((40, 385), np.float32)))
    b.graph.outputs = [Output("y", product.name, "float32")]
    graph, target = core_graph(b.graph), Target.from_names("wormhole_b0", "Float32", "HiFi4")
    tiles = fuse(lower(graph, target), target)
    (output,) = tiles.outputs.values()
    assert (output.slices, output.view) == (7, (1, 3, 385))
    assert tiles.ops[output.op].shape[0] == 7
    assert not any(use.tms for use in tiles.ops[output.op].uses)
    compiled = CompiledModel(graph, place(tiles, target), "test")
    assert compiled.check(strict=True) == ()
    inputs = rng.standard_normal((3, 40), np.float32)
    (got,) = compiled(inputs)
    want = evaluate(graph, {"x": inputs})[graph.outputs[0].value]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_few_columns_are_one_product():
    b = Builder(Graph("g"), decompose=False)
    product = b.matmul(b.input("x", (3, 40), "float32"), b.constant(np.ones((40, matmul.WIDE), np.float32)))
    b.graph.outputs = [Output("y", product.name, "float32")]
    graph = core_graph(b.graph)
    assert (
        lower(graph, Target.from_names("wormhole_b0", "Float16_b", "HiFi3")).shape_of(product.name + ".matmul")[0] == 1
    )
