"""Grids are changed where operands would go through DRAM for lack of streams, if the model says that it is quicker."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.compiler import pipeline
from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.lower.tiles import InputQueue, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.place.candidates import Choice
from buda_emu.compiler.place.decision import PlacementDecision
from buda_emu.compiler.place.placement import PlacedOp, Placement
from buda_emu.compiler.place.routed import make_routable
from buda_emu.compiler.search import improve
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.search.wiring import GridOrder, grid_orders, limit_to_streams
from buda_emu.compiler.target import Target
from vendor_router import ARCHS, needs_vendor_router, refusal

TARGET = Target.from_names("wormhole_b0", "Float16_b", "HiFi3", "")
SHAPE = (1, 10, 8)


def crowded():
    """A line of a nop and another that reads it, and a placement with the first on one core, the other on all."""
    ops = {name: TileOp(name, "nop", [Use(source)], SHAPE) for name, source in (("x", "a"), ("y0", "x"))}
    tiles = TileGraph(ops, inputs={"a": InputQueue("a", "a", SHAPE, (1, 320, 256))})
    return CandidateTable.of(tiles, TARGET), routed({"x": (1, 1), "y0": (10, 8)}, tiles)


def routed(grids, tiles):
    found = Placement(TARGET, tiles)
    for name, grid in grids.items():
        table = CandidateTable.of(tiles, TARGET)
        blocks = next(item.blocks for item in table.corrected[table.index[name]] if item.blocks.grid == grid)
        found.ops[name] = PlacedOp(tiles.ops[name], blocks, 0, (0, 0))
    make_routable(found)
    return found


@pytest.mark.parametrize(("way", "changed"), [(GridOrder(), "x"), (GridOrder(readers=True), "y0")])
def test_just_the_grids_are_left_with_which_the_router_connects(way, changed):
    table, found = crowded()
    assert list(found.detours) == [("y0", "x")]
    limited, why = limit_to_streams(table, found, found.ops, way)
    assert why == {changed: "80 pipes from one core, which has streams for 22"}
    left = [item.blocks.grid for item in limited.corrected[table.index[changed]]]
    assert left
    for choice in table.corrected[table.index[changed]]:
        grid = choice.blocks.grid
        grids = {"x": (1, 1), "y0": (10, 8), changed: grid}
        assert (routed(grids, table.tiles).detours == {}) == (grid in left), grid


def test_nothing_is_tried_where_no_operand_lacks_streams():
    table, found = crowded()
    assert grid_orders(found, {"x"}) == []  # its reader is another epoch's
    assert grid_orders(found, found.ops) == [GridOrder(), GridOrder(readers=True)]
    found.detours["y0", "x"] = found.detours["y0", "x"]._replace(kind="stack")
    assert grid_orders(found, found.ops) == []
    assert limit_to_streams(table, found, found.ops, GridOrder()) is None


def test_where_no_grid_of_one_is_enough_the_other_is_changed():
    table, found = crowded()
    number = table.index["x"]
    fixed = [item for item in table.corrected[number] if item.blocks.grid == (1, 1)]
    own = replace(table, corrected=[fixed if n == number else item for n, item in enumerate(table.corrected)])
    _, why = limit_to_streams(own, found, found.ops, GridOrder())
    assert list(why) == ["y0"]


@pytest.mark.parametrize(
    ("plain", "transposed", "taken"),
    [({"x": 100.0}, {"x": 100.0}, "plain"), ({"x": 100.0}, {"x": 96.0}, "transposed"), ({}, {"x": 500.0}, "transposed"),
     ({"x": 100.0}, {}, "plain")],
)  # fmt: skip
def test_grids_are_transposed_where_that_is_quicker_or_the_only_way(monkeypatch, plain, transposed, taken):
    made = {
        sort: {
            name: PlacementDecision(Choice(Blocks((1, 1), 1, (1, 1), (1, 1)), frozenset(), 1.0, cycles), 0, 0, (0, 0))
            for name, cycles in found.items()
        }
        for sort, found in (("plain", plain), ("transposed", transposed))
    }
    monkeypatch.setattr(
        improve,
        "pack",
        lambda *_, grid_transpose: (made["transposed" if grid_transpose else "plain"], len(made["transposed"])),
    )
    assert improve.pack_either_way(crowded()[0], range(1), 0, 1) is made[taken]


def attention():
    """Scores of 16 heads of 256 x 256, their softmax, and what they weigh."""
    b = Builder(Graph("attention"))
    q, k = (b.input(name, (1, 16, 256, 64), "float32") for name in "qk")
    scores = b.matmul(q, b.transpose(k, perm=(0, 1, 3, 2)))
    b.graph.outputs = [Output("y", b.matmul(b.softmax(scores, dim=3), q).name, "float32")]
    return b.graph


def test_a_softmax_goes_from_core_to_core_and_the_report_says_how(monkeypatch):
    monkeypatch.setattr(pipeline, "fuse_spreads", lambda tiles: tiles)  # a maximum has a reader more, which spreads it
    compilation = Compilation.of(CompileOptions(df="Bfp8_b", fidelity="LoFi", microbatch=64))
    compiled = CompiledModel(*compilation.place(attention()))
    monkeypatch.setattr(improve, "grid_orders", lambda *_: [])
    before = CompiledModel(*compilation.place(attention()))
    assert len(before.placement.detours) > len(compiled.placement.detours)
    assert sum(compiled.perf().run.programs().values()) < sum(before.perf().run.programs().values())
    (told,) = [part for part in compiled.report().split("\n\n") if "chosen by streams" in part]
    for name, placed in compiled.placement.ops.items():
        assert (name in told and placed.why in told) == bool(placed.why)
    assert "chosen by streams" not in before.report()
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal((1, 16, 256, 64)).astype(np.float32) for name in "qk"}
    np.testing.assert_array_equal(compiled.run(given)[0], before.run(given)[0])
    assert compiled.check(strict=True) == ()


@pytest.mark.slow
@needs_vendor_router
@pytest.mark.parametrize("arch", ARCHS)
def test_the_vendor_takes_grids_that_are_chosen_by_streams(arch, tmp_path):
    compilation = Compilation.of(CompileOptions(arch=arch, df="Bfp8_b", fidelity="LoFi", microbatch=64))
    assert refusal(CompiledModel(*compilation.place(attention())).text, arch, tmp_path) == ""
