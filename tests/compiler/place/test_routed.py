"""Placements are made such that the router takes them: other buffers and ublocks, else the way by DRAM."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.lower.tiles import Constant, TileGraph, TileOp, Use
from buda_emu.compiler.place import candidates, routable, routed
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.place.placement import PlacedOp, Placement
from buda_emu.compiler.place.routable import repeat_numbers, streams_of_operands
from buda_emu.compiler.place.routed import make_routable
from buda_emu.compiler.target import Target

onnx = pytest.importorskip("onnx")
WORMHOLE = Target.from_names("wormhole_b0", "Float16_b", "HiFi3", "")


def placement(*ops):
    """Of (op, blocks), all in one epoch; where they stand does not matter."""
    tiles = TileGraph({op.name: op for op, _ in ops})
    found = Placement(WORMHOLE, tiles)
    found.ops = {op.name: PlacedOp(op, blocks, 0, (0, 0)) for op, blocks in ops}
    return found


def nop(name, source, shape, grid):
    t, rows, columns = shape
    blocks = Blocks(grid, t, (rows // grid[0], columns // grid[1]), (1, 1))
    return TileOp(name, "nop", [Use(source)], shape), blocks


def test_readers_of_many_pipes_take_the_way_by_dram():
    shape = (1, 10, 8)
    found = placement(
        nop("x", "a", shape, (1, 1)),
        nop("wide", "x", shape, (10, 8)),
        nop("some", "x", shape, (5, 2)),
        nop("few", "x", shape, (1, 4)),
    )
    make_routable(found)
    assert list(found.detours) == [("wide", "x")]
    assert found.detours["wide", "x"].why == "94 pipes from one core, which has streams for 22"
    assert found.source("x", found.ops["wide"]) == "by_dram_x"
    assert found.source("x", found.ops["some"]) == "x"


def test_what_fits_stays_as_it_is():
    shape = (1, 10, 8)
    found = placement(nop("x", "a", shape, (10, 8)), *(nop(f"y{n}", "x", shape, (10, 8)) for n in range(8)))
    before = dict(found.ops)
    make_routable(found)
    assert (found.ops, found.detours) == (before, {})


@pytest.mark.parametrize(("microbatch", "blocks"), [(64, 10), (4, 8), (2, 8), (5, 10), (1, 10)])
def test_a_buffer_of_more_than_a_round_holds_whole_rounds(microbatch, blocks):
    op, made = nop("x", "a", (1, 10, 8), (10, 8))
    found = placement((op, replace(made, buf_size_mb=10)))
    found.microbatch = microbatch
    make_routable(found)
    assert found.ops["x"].blocks.buf_size_mb == blocks


def stacked(slices):
    """Nine slices of a pick, side by side for a product; so many of them are in its buffer at a time."""
    pick = TileOp("x", "nop", [Use("a")], (9, 28, 2))
    product = TileOp("y", "matmul", [Use("x", (("hstack", 9),)), Use("w")], (1, 28, 2), inner=18)
    tiles = Blocks((7, 1), 9, (4, 2), (1, 1), max(1, 2 * slices))
    return (pick, tiles), (product, Blocks((7, 1), 1, (2, 2), (2, 1), 2, 6, 3))


def test_what_takes_one_input_at_a_time_is_not_searched_for_inputs(monkeypatch):
    """Every op of every placement that is tried asks for them."""
    asked: list[str] = []
    monkeypatch.setattr(TileGraph, "flows", lambda _, program: asked.append(program) or True)
    tiles = TileGraph({}, states={"s": object()})
    one, several = (Placement(WORMHOLE, tiles, microbatch=count) for count in (1, 4))
    assert (one.count("fwd"), asked) == (1, [])
    assert (several.count("fwd"), asked) == (4, ["fwd"])


def test_a_producer_with_room_holds_all_that_is_stacked():
    found = placement(*stacked(1))
    make_routable(found)
    assert (found.ops["x"].blocks.buf_size_mb, found.detours) == (18, {})


def test_else_the_reader_has_other_ublocks():
    found = placement(*stacked(0))  # one block, which stays where it is
    make_routable(found)
    blocks = found.ops["y"].blocks
    assert (blocks.u_kt, blocks.m_k, found.detours) == (2, 9, {})


def test_else_the_reader_takes_the_way_by_dram(monkeypatch):
    monkeypatch.setattr(routed, "_other_ublocks", lambda *_: iter(()))
    found = placement(*stacked(0))
    make_routable(found)
    assert found.detours["y", "x"].kind == "stack"


@pytest.fixture(scope="module")
def mixer():
    """Products of a result with itself turned, and what else reads it."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    held = [numpy_helper.from_array(rng.integers(-1, 2, (64, 64)).astype(np.float32), "w")]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="h"),
        helper.make_node("Transpose", ["h"], ["t"], name="t", perm=[1, 0]),
        helper.make_node("MatMul", ["h", "t"], ["scores"], name="scores"),
        helper.make_node("Softmax", ["scores"], ["share"], name="share"),
        helper.make_node("MatMul", ["share", "h"], ["mixed"], name="mixed"),
        helper.make_node("Add", ["mixed", "h"], ["y"], name="y"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [128, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [128, 64])
    graph = helper.make_graph(nodes, "mixer", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.parametrize("effort", ["low", "default"])
def test_the_way_by_dram_changes_no_value(mixer, effort, monkeypatch):
    x = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
    (plain,) = compile_model(mixer, effort=effort)(x)
    monkeypatch.setattr(routed, "EXTRA_STREAMS", 7)
    compiled = compile_model(mixer, effort=effort)
    assert compiled.placement.detours
    assert any(queue.name.startswith("by_dram_") for queue in compiled.placement.queues.values())
    assert compiled.check(strict=True) == ()
    assert compiled.perf().cycles > 0
    assert "through DRAM within an epoch instead of from core to core:" in compiled.report()
    (reader, source), _ = next(iter(compiled.placement.detours.items()))
    assert f"  {reader} reads {source}: " in compiled.report()
    np.testing.assert_array_equal(compiled(x)[0], plain)


def _with_one_tile(values):
    """An op that adds a constant of one tile everywhere; its divisions over 4 and over 64 cores."""
    use = Use("one", (("broadcast", "r", 8), ("broadcast", "c", 8)))
    tiles = TileGraph({"x": TileOp("x", "add", [Use("a"), use], (1, 8, 8))})
    tiles.constants["one"] = Constant("one", values)
    tiles.ops["a"] = nop("a", "b", (1, 8, 8), (1, 1))[0]
    found = candidates.choices(WORMHOLE, tiles, tiles.ops["x"])
    return tiles, [next(item for item in found if item.blocks.grid == grid) for grid in ((2, 2), (8, 8))]


def test_constants_stay_in_l1_as_far_as_there_are_streams():
    """A constant of one tile goes from one core to each of the grid."""
    _, (few, many) = _with_one_tile(np.arange(1024, dtype=np.float32).reshape(1, 32, 32))
    assert few.held == {"one"}
    assert many.held == set()


def test_a_number_is_repeated_where_one_core_has_no_streams_to_all_others():
    tiles, (few, many) = _with_one_tile(np.full((1, 32, 32), 3, np.float32))
    op = tiles.ops["x"]
    assert few.held == many.held == {"one"}
    assert repeat_numbers(tiles, op, few.blocks, few.held) == (op, few.held)
    made, held = repeat_numbers(tiles, op, many.blocks, many.held)
    assert made.uses == [Use("a"), Use("one.1x8x8")]
    assert held == {"one.1x8x8"}
    assert tiles.constants["one.1x8x8"].shape == op.shape
    assert (tiles.constants["one.1x8x8"].values == 3).all()
    assert streams_of_operands(tiles, made, many.blocks, held) < streams_of_operands(tiles, op, many.blocks, many.held)


def test_a_model_with_repeated_numbers_computes_the_same(monkeypatch):
    """Cores that add a number have it each, where one of them has few streams; in `low` they read it out of DRAM."""
    from onnx import TensorProto, helper, numpy_helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [256, 512]) for name in "xy")
    half = numpy_helper.from_array(np.full((), 0.5, np.float32), "half")
    graph = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["h"]), helper.make_node("Add", ["h", "half"], ["y"])],
        "number",
        [x],
        [y],
        [half],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    plain = compile_model(model, effort="low")
    for room in (candidates, routable):
        monkeypatch.setattr(room, "EXTRA_STREAMS", 9)
    compiled = compile_model(model)
    assert [name for name in compiled.placement.tiles.constants if name.endswith(".1x8x16")]
    assert compiled.check(strict=True) == ()
    given = np.random.default_rng(0).standard_normal((256, 512), np.float32)
    np.testing.assert_array_equal(compiled(given)[0], plain(given)[0])


def test_the_strict_check_of_a_compiled_model_judges_its_streams_too(mixer, monkeypatch):
    compiled = compile_model(mixer)
    assert compiled.check(strict=True) == ()
    monkeypatch.setattr("buda_emu.performance.routing.pipes.core_use.EXTRA_STREAMS", 0)
    assert {finding.rule for finding in compiled.check(strict=True)} == {"V340"}
    assert compiled.check(strict=False) == ()
    assert compile_model(mixer, arch="blackhole").check(strict=True) == ()
