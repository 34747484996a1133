"""Ops that no grid has room for run in slices of their rows along t."""

from dataclasses import replace

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.parted import evaluate
from buda_emu.compiler.place.rows import fits, stream_rows
from buda_emu.compiler.target import L1_RESERVED


def tall(rows=1024, width=64, wide=256):
    """A product, element-wise ops and a softmax of many rows, and a product back."""
    b = Builder(Graph("tall"))
    rng = np.random.default_rng(0)
    x = b.input("x", (rows, width), "float32")
    first, second, bias = (
        b.constant(rng.standard_normal(shape).astype(np.float32) / 8) for shape in ((width, wide), (wide, width), wide)
    )
    h = b.softmax(b.sigmoid(b.add(b.matmul(x, first), bias)), dim=1)
    b.graph.outputs = [Output("y", b.add(b.matmul(h, second), x).name, "float32")]
    return b.graph


def small(kibibytes, **options):
    """A chip of few cores with little room."""
    own = Compilation.of(CompileOptions(**{"microbatch": 1, **options}))
    arch = replace(own.device.arch, l1_bytes=L1_RESERVED + (kibibytes << 10), grid=(2, 2))
    return replace(own, device=replace(own.device, arch=arch))


@pytest.mark.parametrize(("effort", "rows", "room"), [("low", 1024, 160), ("default", 256, 64)])
def test_what_fits_no_grid_runs_in_slices_with_the_same_values(effort, rows, room):
    graph = tall(rows)
    compilation = small(room, effort=effort, microbatch=2)
    compiled = CompiledModel(*compilation.place(graph))
    ops = [placed.op for placed in compiled.placement.ops.values()]
    assert any(op.type == "matmul" and op.shape[0] > 1 for op in ops)
    assert all(fits(compilation.device, op) for op in ops)
    assert [item for item in compiled.check(strict=True) if item.severity == "error"] == []
    x = np.random.default_rng(1).standard_normal((rows, 64)).astype(np.float32)
    (found,) = compiled.run({"x": x})
    np.testing.assert_allclose(found, evaluate(graph, {"x": x})[graph.outputs[0].value], rtol=1e-4, atol=1e-5)
    whole = CompiledModel(*Compilation.of(CompileOptions(microbatch=2, effort=effort)).place(tall(rows)))
    np.testing.assert_array_equal(whole.run({"x": x})[0], found)


def heads(rows=256, size=32, count=2):
    """Attention: products of which each slice of t has a second operand of its own."""
    b = Builder(Graph("heads"))
    q, k, v = (b.input(name, (count, rows, size), "float32") for name in "qkv")
    scores = b.softmax(b.matmul(q, b.transpose(k, perm=(0, 2, 1))), dim=2)
    b.graph.outputs = [Output("y", b.matmul(scores, v).name, "float32")]
    return b.graph


def test_a_product_in_slices_repeats_what_each_slice_has_of_its_own():
    graph, compilation = heads(), small(64, effort="low")
    compiled = CompiledModel(*compilation.place(graph))
    products = [placed.op for placed in compiled.placement.ops.values() if placed.op.type == "matmul"]
    counts = [(op, op.shape[0] // 2) for op in products if op.shape[0] > 2]
    assert any(op.uses[1].tms[-2:] == (("broadcast", "r", count), ("vslice", count)) for op, count in counts)
    assert [item for item in compiled.check(strict=True) if item.severity == "error"] == []
    rng = np.random.default_rng(1)
    given = {name: rng.standard_normal((2, 256, 32)).astype(np.float32) for name in "qkv"}
    np.testing.assert_allclose(
        compiled.run(given)[0], evaluate(graph, given)[graph.outputs[0].value], rtol=1e-4, atol=1e-5
    )


def test_where_all_ops_have_room_nothing_changes():
    compilation = Compilation.of(CompileOptions())
    tiles = compilation.run_until(tall(), "state_formats").forms[0].tiles
    assert stream_rows(tiles, compilation.device) is tiles


def test_slices_are_stacked_for_who_reads_them_whole():
    compilation = small(160)
    tiles = stream_rows(compilation.run_until(tall(), "state_formats").forms[0].tiles, compilation.device)
    sliced = {op.name: op.shape[0] for op in tiles.ops.values() if op.shape[0] > 1}
    assert sliced
    for op in tiles.ops.values():
        for use in op.uses:
            if use.source in sliced and op.name not in sliced:
                assert use.tms[0] == ("vstack", sliced[use.source])


def test_what_cannot_be_cut_is_refused_as_ever():
    b = Builder(Graph("g"))
    x = b.input("x", (32, 65536), "float32")
    b.graph.outputs = [Output("y", b.sigmoid(x).name, "float32")]
    with pytest.raises(be.UnsupportedError, match="no grid of wormhole_b0 has room"):
        small(40).place(b.graph)
