"""Pickers that no grid has room for give their rows, or columns, in other slices of t."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.picker import PickTable
from buda_emu.compiler.parted import evaluate
from buda_emu.compiler.search import forms, placer
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.forms import fracture_pickers, spread_pickers
from buda_emu.compiler.search.placer import place
from buda_emu.compiler.target import L1_RESERVED, Objective
from vendor_router import ARCHS, AVAILABLE, refusal


def space(b, value, channels, op="conv"):
    """A convolution of 3 x 3 that keeps the size, or the largest of 2 x 2."""
    if op == "pool":
        return b.max_pool(value, kernel=(2, 2), strides=(2, 2), pads=((0, 0),) * 2, dilations=(1, 1))
    rng = np.random.default_rng(channels)
    w = b.constant(rng.standard_normal((channels, value.shape[1], 3, 3)).astype(np.float32) / 8)
    return b.conv(value, w, strides=(1, 1), pads=((1, 1),) * 2, dilations=(1, 1))


SHAPES = {"conv": (1, 3, 64, 64), "pool": (1, 3, 128, 128), "wide": (2, 3, 32, 32), "flat": (1, 16)}


def image(kind):
    """A second convolution; a maximum over windows; two rows of very many columns; a convolution of what was a row."""
    b = Builder(Graph(kind))
    if kind == "flat":
        w = b.constant(np.random.default_rng(1).standard_normal((16, 33 * 31 * 31)).astype(np.float32) / 4)
        y = b.reshape(b.matmul(b.input("x", SHAPES[kind], "float32"), w), shape=(1, 33, 31, 31))
        b.graph.outputs = [Output("y", space(b, y, 8).name, "float32")]
        return b.graph
    y = b.relu(space(b, b.input("x", SHAPES[kind], "float32"), 24))
    if kind == "wide":
        y = b.reshape(space(b, y, 3), shape=(2, 3072))
        y = b.matmul(y, b.constant(np.random.default_rng(1).standard_normal((3072, 8)).astype(np.float32) / 64))
    else:
        y = space(b, y, 8, "pool" if kind == "pool" else "conv")
    b.graph.outputs = [Output("y", b.relu(y).name, "float32")]
    return b.graph


def small_recipe(kibibytes, arch="wormhole_b0", grid=(2, 2), **options):
    """For a chip of few cores with little room."""
    own = Compilation.of(CompileOptions(**{"microbatch": 2, "arch": arch, **options}))
    device = replace(own.device.arch, l1_bytes=L1_RESERVED + (kibibytes << 10), grid=grid)
    return replace(own, device=replace(own.device, arch=device))


def on_small_chip(graph, kibibytes, arch="wormhole_b0", grid=(2, 2), **options):
    """Compiled for it."""
    return CompiledModel(*small_recipe(kibibytes, arch, grid, **options).place(graph))


def pickers(compiled):
    """Slices, rows and columns of each."""
    return [placed.op.shape for placed in compiled.placement.ops.values() if "table" in placed.op.attrs]


def taken(compiled, arch, folder):
    """No finding of ours, none of the vendor's where its programs are here."""
    assert compiled.check(strict=True) == ()
    if AVAILABLE:
        assert refusal(compiled.text, arch, folder) == ""


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("kind", "room", "effort", "grid"),
    [("conv", 120, "low", (2, 2)), ("conv", 120, "default", (2, 2)), ("pool", 160, "low", (4, 2)),
     ("wide", 160, "low", (2, 2))],
)  # fmt: skip
def test_what_fits_no_grid_gives_other_slices_with_the_same_bits(kind, room, effort, grid, arch, tmp_path):
    graph = image(kind)
    compiled = on_small_chip(graph, room, arch, grid, effort=effort)
    whole = CompiledModel(*Compilation.of(CompileOptions(microbatch=2, arch=arch, effort="low")).place(image(kind)))
    assert max(r * c for _, r, c in pickers(compiled)) < max(r * c for _, r, c in pickers(whole))
    x = np.random.default_rng(1).standard_normal(SHAPES[kind]).astype(np.float32)
    (found,) = compiled.run({"x": x})
    np.testing.assert_allclose(found, evaluate(graph, {"x": x})[graph.outputs[0].value], rtol=1e-4, atol=1e-5)
    if effort == "low":  # a search may share taps out over several pickers, whose sums are of another order
        np.testing.assert_array_equal(found, whole.run({"x": x})[0])
    taken(compiled, arch, tmp_path)


def test_many_slices_of_few_rows_are_put_below_each_other(tmp_path):
    """961 slices of 2 tile rows: a core had 30752 strips to hold."""
    graph = image("flat")
    compiled = CompiledModel(*Compilation.of(CompileOptions(arch="grayskull", effort="low", microbatch=2)).place(graph))
    assert pickers(compiled)[0] == (31, 62, 1)
    x = np.random.default_rng(1).standard_normal(SHAPES["flat"]).astype(np.float32)
    np.testing.assert_allclose(
        compiled.run({"x": x})[0], evaluate(graph, {"x": x})[graph.outputs[0].value], rtol=1e-4, atol=1e-4
    )
    taken(compiled, "grayskull", tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_the_first_convolution_of_a_residual_network_alone(arch, tmp_path):
    """What leaves it is in the host's order behind a transpose, whatever windows it reads: no picker is left, or one of
    the rows that the windows' outputs stand in."""
    b = Builder(Graph("head"))
    w = b.constant(np.random.default_rng(0).standard_normal((64, 3, 7, 7)).astype(np.float32) / 8)
    y = b.conv(b.input("x", (1, 3, 224, 224), "float32"), w, strides=(2, 2), pads=((3, 3),) * 2, dilations=(1, 1))
    b.graph.outputs = [Output("y", y.name, "float32")]
    compiled = CompiledModel(
        *Compilation.of(CompileOptions(arch=arch, df="Bfp8_b", fidelity="LoFi", microbatch=64)).place(b.graph)
    )
    (output,) = compiled.placement.tiles.outputs.values()
    assert compiled.placement.ops[output.op].op.shape == (1, 2, 392)
    assert compiled.perf().inputs_per_second > 2000
    taken(compiled, arch, tmp_path)


def test_taps_of_slices_are_shared_out_over_several_pickers():
    """Each slice of the product has all taps, so each part has some taps of each slice."""
    compilation = small_recipe(120, effort="low")
    graph = image("conv")
    made = compilation.run_until(graph, "stream_rows").forms[0]
    table = CandidateTable.of(made.tiles, compilation.device)
    parts = fracture_pickers(table, 1, 0.001)
    assert sum("table" in op.attrs for op in parts.ops.values()) > sum("table" in op.attrs for op in table.ops)
    compiled = CompiledModel(made.graph, place(parts, compilation.device, compilation.objective), "")
    x = np.random.default_rng(1).standard_normal(SHAPES["conv"]).astype(np.float32)
    np.testing.assert_allclose(
        compiled.run({"x": x})[0], evaluate(graph, {"x": x})[graph.outputs[0].value], rtol=1e-4, atol=1e-4
    )


def test_a_form_is_refined_with_its_own_table_where_links_refuse_the_best_one(monkeypatch):
    """Two forms of a graph for two chips have other ops, and the links have no room for the quicker form."""
    monkeypatch.setattr(forms, "FRACTURES", (1.0, 0.001))
    graph = image("conv")
    tiles = small_recipe(120, effort="low").run_until(graph, "stream_rows").forms[0].tiles
    target = small_recipe(120).device
    searched = forms.Forms(tiles, target).tables(2)
    assert len({len(table.ops) for table in searched}) == 2
    refused = []

    def refuse_first(placement, _objective):
        refused.append(placement)
        return "no room" if len(refused) == 1 else ""

    monkeypatch.setattr(placer, "link_refusal", refuse_first)
    objective = Objective(objective="latency", chips=2, microbatch=16)
    placement = place(tiles, target, objective)
    assert len(refused) > 1
    assert placement.ops.keys() != refused[0].ops.keys()


def few_channels(channels=4, size=16):
    """A convolution to few channels: the host's layout has a slice of one tile for each of them."""
    b = Builder(Graph("few"))
    y = b.relu(space(b, b.input("x", (1, 4, size, size), "float32"), 24))
    b.graph.outputs = [Output("y", space(b, y, channels).name, "float32")]
    return b.graph


@pytest.mark.parametrize("share", [1.0, 0.3, 0.001])
@pytest.mark.parametrize("channels", [3, 4, 6])
def test_slow_pickers_of_small_slices_are_spread_over_rows_of_cores(channels, share):
    """Slices of one tile lie below each other, a row of cores for each; readers slice them again: the same bits."""
    compilation = small_recipe(900, grid=(10, 8), effort="low")
    graph = few_channels(channels)
    made = compilation.run_until(graph, "stream_rows").forms[0]
    table = CandidateTable.of(made.tiles, compilation.device)
    spread = spread_pickers(table, table.tiles, share)
    changed = {name: op for name, op in spread.ops.items() if "table" in op.attrs and op is not table.tiles.ops[name]}
    reshaped = [op for name, op in changed.items() if op.shape != table.tiles.ops[name].shape]
    assert reshaped
    for op in reshaped:
        t, rows, columns = table.tiles.ops[op.name].shape
        assert op.shape[0] * op.shape[1] == t * rows
        assert (op.shape[1] > rows, op.shape[2]) == (True, columns)
        assert op.name not in spread.shown
        assert op.name not in {name for name, _ in spread.places.values()}
    x = np.random.default_rng(1).standard_normal((1, 4, 16, 16)).astype(np.float32)
    outputs = [
        CompiledModel(made.graph, place(tiles, compilation.device, compilation.objective), "").run({"x": x})[0]
        for tiles in (table.tiles, spread)
    ]
    np.testing.assert_array_equal(*outputs)
    np.testing.assert_allclose(outputs[1], evaluate(graph, {"x": x})[graph.outputs[0].value], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("arch", ARCHS)
def test_the_search_takes_spread_pickers_where_they_are_quicker(arch, tmp_path, monkeypatch):
    def compile_it():
        return CompiledModel(*Compilation.of(CompileOptions(arch=arch, microbatch=64)).place(few_channels()))

    compiled = compile_it()
    monkeypatch.setattr("buda_emu.compiler.search.forms.spread_pickers", lambda _table, tiles, _share: tiles)
    assert compiled.perf().cycles < 0.7 * compile_it().perf().cycles
    taken(compiled, arch, tmp_path)


@pytest.mark.parametrize(("t", "rows", "together"), [(1, 4, 1), (6, 4, 3), (6, 8, 1)])
def test_a_table_in_other_slices_picks_the_same_rows(t, rows, together):
    inner = 3
    index = np.random.default_rng(0).integers(-1, 2 * inner * 32, t * rows * 32)
    table = PickTable.of(Sparse.gather(index, 2 * inner * 32), t, rows)
    whole = dense(table).reshape(t, rows)
    for count in (2, 4):
        grouped = whole.reshape(t // together, together, count, rows // count).swapaxes(1, 2)
        np.testing.assert_array_equal(dense(table.slice_rows(count, together)), grouped.reshape(t * count, -1))
    if t > 1:
        np.testing.assert_array_equal(dense(table.gather_slices(3)), whole.reshape(t // 3, rows * 3))
    twice = dense(table.repeat_slices(2, inner))
    assert twice.shape == (2 * t, rows)
    for part, (number, row) in product(range(2), np.ndindex(t, rows)):  # slice s of the operand: 2 s and 2 s + 1
        cell = {((2 * (at // inner) + part) * inner + at % inner, which) for at, which in whole[number, row]}
        assert twice[2 * number + part, row] == cell


def dense(table):
    """[slice, row]: what a tile row is made of, pairs of the inner tile and the number of the picking one."""
    found = np.full((table.t, table.rows), None, object)
    for at in np.ndindex(*found.shape):
        mine = (table.slice == at[0]) & (table.row == at[1])
        found[at] = frozenset(zip(table.inner[mine].tolist(), table.which[mine].tolist(), strict=True))
    return found
