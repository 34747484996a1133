"""Slices below each other, so that more cores share what is done row by row."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.parted import evaluate
from buda_emu.compiler.place.rows import stack_slices


def heads(count=4, rows=32, columns=256, width=32):
    """Attention of several heads, with a mask for all of them."""
    b = Builder(Graph("heads"))
    rng = np.random.default_rng(0)
    q, k, v = (
        b.input(name, shape, "float32")
        for name, shape in (("q", (count, rows, width)), ("k", (count, width, columns)), ("v", (count, columns, width)))
    )
    mask = b.constant(rng.standard_normal((1, rows, columns)).astype(np.float32))
    y = b.matmul(b.softmax(b.add(b.matmul(q, k), mask), dim=2), v)
    b.graph.outputs = [Output("y", y.name, "float32")]
    return b.graph


def tiles_of(graph):
    return Compilation.of(CompileOptions()).run_until(graph, "state_formats").forms[0].tiles


def stacked(tiles, count):
    """The graph with so many slices below each other wherever they are divided so."""
    return stack_slices(tiles, lambda op: count if op.shape[0] % count == 0 else 1)


@pytest.mark.parametrize("count", [2, 4])
def test_row_by_row_ops_have_their_slices_below_each_other(count):
    tiles = tiles_of(heads())
    cut = stacked(tiles, count)
    for name, op in cut.ops.items():
        t, rows, columns = tiles.ops[name].shape
        product = op.type == "matmul" and op.uses[1].source in ("k", "v")
        if not product and not op.attrs.get("untilize"):
            assert op.shape == (t // count, rows * count, columns)
        else:
            assert op.shape == tiles.ops[name].shape
    inner = [use for op in cut.ops.values() for use in op.uses if op.type in ("fused_op", "reduce")]
    assert inner
    assert not any(tm[0] == "vslice" for use in inner for tm in use.tms), "what both have below each other stays so"


def test_where_slices_are_not_divided_nothing_changes():
    tiles = tiles_of(heads())
    assert stacked(tiles, 3) is tiles


@pytest.mark.parametrize("count", [2, 4])
def test_the_values_are_the_same(count):
    graph = heads()
    rng = np.random.default_rng(1)
    given = {name: rng.standard_normal(graph[name].shape).astype(np.float32) for name in graph.inputs}
    expected = evaluate(graph, given)[graph.outputs[0].value]
    compilation = Compilation.of(CompileOptions(effort="low"))
    file = compilation.run_until(graph, "state_formats")
    forms = tuple(replace(form, tiles=stacked(form.tiles, count)) for form in file.forms)
    compiled = CompiledModel(*compilation.resume(replace(file, forms=forms)))
    assert [item for item in compiled.check(strict=True) if item.severity == "error"] == []
    (found,) = compiled.run(given)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
