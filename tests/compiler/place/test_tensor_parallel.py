"""Products shared out over chips by columns, or by slices: each chip has its share of the constant."""

from dataclasses import replace

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.lower import matmul
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.search.placer import place
from buda_emu.compiler.search.tensor_parallel import share_products
from buda_emu.compiler.target import Objective, Target
from buda_emu.performance.timing.transfers.loading import EpochLoad
from buda_emu.spec import boards as cluster
from vendor_router import needs_vendor_router, refusal


def network(width=512, hidden=1024, rows=1, *, gated=False):
    """Two products by constants with an activation between, and what was added before, after that."""
    b = Builder(Graph("g"))
    rng = np.random.default_rng(0)

    def held(*shape):
        return b.constant(rng.standard_normal(shape).astype(np.float32) / 20)

    x = b.input("x", (rows, width), "float32")
    up = b.add(b.matmul(x, held(width, hidden)), held(hidden))
    active = b.multiply(up, b.sigmoid(up))
    if gated:
        active = b.multiply(active, b.matmul(x, held(width, hidden)))
    y = b.add(b.matmul(active, held(hidden, width)), x)
    b.graph.outputs = [Output("y", y.name, "float32")]
    return b.graph


def given(rows=1, width=512):
    return np.random.default_rng(1).standard_normal((rows, width)).astype(np.float32)


def compilation(**options):
    return Compilation.of(CompileOptions(**{"df": "Bfp8_b", "fidelity": "LoFi", **options}))


def shared(graph, chips, monkeypatch, **options):
    """Compiled with every product shared out, as if loading its epochs cost nothing: more cores with a kernel take
    longer to load than what networks as small as these gain by sharing."""
    from buda_emu.compiler.search import placer
    from buda_emu.performance.timing import model

    monkeypatch.setattr(placer, "WORTH", (0.0,))
    monkeypatch.setattr(model, "epoch_load", lambda *_: EpochLoad(()))
    return CompiledModel(*compilation(chips=chips, objective="latency", **options).place(graph))


def chips_of(compiled):
    return {name: placed.chip for name, placed in compiled.placement.ops.items()}


@pytest.mark.parametrize(("chips", "gated"), [(2, True), (4, False)])
def test_each_chip_has_its_share_and_the_bits_are_those_of_one(chips, gated, monkeypatch):
    (expected,) = CompiledModel(*compilation(objective="latency").place(network(gated=gated)))(given())
    compiled = shared(network(gated=gated), chips, monkeypatch)
    assert compiled.check(strict=True) == ()
    assert set(chips_of(compiled).values()) == set(range(chips))
    products = [op.op for op in compiled.placement.ops.values() if op.op.type == "matmul"]
    assert len(products) == chips * (3 if gated else 2)
    # All that a chip multiplies by lies in its own DRAM, and nowhere else.
    for name, placed in compiled.placement.ops.items():
        for use in placed.op.uses:
            if use.source in compiled.placement.tiles.constants:
                assert compiled.placement.queues[compiled.placement.source(use.source, placed)].chip == placed.chip
                assert name.endswith(f".part.{placed.chip}")
    np.testing.assert_array_equal(compiled(given())[0], expected)
    np.testing.assert_array_equal(compiled(given())[0], expected)  # pointers go on


@needs_vendor_router
@pytest.mark.parametrize("chips", [2, pytest.param(3, marks=pytest.mark.slow), 4])
def test_the_vendors_programs_take_what_links_have_room_for(chips, monkeypatch, tmp_path):
    compiled = shared(network(256 * chips, 512 * chips), chips, monkeypatch)
    assert len(set(chips_of(compiled).values())) == chips
    assert refusal(compiled.text, "wormhole_b0", tmp_path, chips=chips) == ""


def test_what_links_have_no_room_for_is_not_taken(monkeypatch):
    """With one link between two chips: seven pipes."""
    wide = shared(network(), 2, monkeypatch)
    monkeypatch.setattr(cluster, "LINKS", 1)
    assert "V362" in {found.rule for found in wide.check(strict=True)}
    narrow = shared(network(), 2, monkeypatch)
    assert narrow.check(strict=True) == ()
    assert set(chips_of(narrow).values()) == {0, 1}


def test_what_is_element_wise_between_products_stays_on_its_chip(monkeypatch):
    """Only the operand of the second product, and what is added last, are put together again."""
    compiled = shared(network(), 2, monkeypatch)
    gathered = {name for name, placed in compiled.placement.ops.items() if placed.op.type == "splice"}
    assert len(gathered) == 3  # on each chip for the second product, on the first one for the sum
    elementwise = [placed for placed in compiled.placement.ops.values() if placed.op.type == "fused_op"]
    assert [placed.chip for placed in elementwise if ".part." in placed.op.name] == [0, 1]


@pytest.mark.parametrize("chips", [2, 3])
def test_a_product_in_slices_is_shared_out_by_slices(chips, monkeypatch):
    monkeypatch.setattr(matmul, "WIDE", 8 * TILE)
    monkeypatch.setattr(matmul, "SHARING", 2)
    (expected,) = CompiledModel(*compilation(objective="latency").place(network(rows=40)))(given(40))
    compiled = shared(network(rows=40), chips, monkeypatch)
    assert compiled.check(strict=True) == ()
    parts = [placed.op for placed in compiled.placement.ops.values() if placed.op.name.endswith(".part.0")]
    assert parts
    np.testing.assert_array_equal(compiled(given(40))[0], expected)


def test_as_many_rounds_of_inputs_as_were_asked_for(monkeypatch):
    """Streams of inputs, too: what lies between epochs lies on the chip that reads it."""
    compiled = shared(network(), 2, monkeypatch, microbatch=3)
    assert compiled.check(strict=True) == ()
    many = given(12)
    one = CompiledModel(*compilation(objective="latency").place(network()))
    np.testing.assert_array_equal(compiled(many)[0], one(many)[0])


def test_it_is_taken_where_the_model_says_that_one_input_is_quicker():
    """Constants of some MiB, which one chip's DRAM is busy with."""
    one, two = (
        CompiledModel(*compilation(chips=chips, objective="latency").place(network(1024, 4096))) for chips in (1, 2)
    )
    assert two.placement.chips == 2
    assert one.perf().cycles > 1.25 * two.perf().cycles  # loading the epochs included, which takes as long
    assert "on 2 chips" in two.report()


@pytest.mark.parametrize("effort", ["low", "default"])
def test_a_layer_that_exceeds_the_memory_of_a_chip_is_shared_out(effort):
    own = compilation(chips=2, effort=effort, microbatch=2)
    small = replace(own.device.arch, dram_channel_bytes=0x10000000 + (1 << 20))  # above what the backend keeps
    compiled = CompiledModel(*replace(own, device=replace(own.device, arch=small)).place(network(1024, 4096)))
    assert compiled.placement.chips == 2
    used = [placed for placed in compiled.placement.ops.values() if placed.op.type == "matmul"]
    assert {placed.chip for placed in used} == {0, 1}
    assert compiled.check(strict=True) == ()
    alone = replace(compilation(effort=effort), device=replace(own.device, arch=small))
    with pytest.raises(be.UnsupportedError, match="DRAM of one wormhole_b0 is full"):
        alone.place(network(1024, 4096))
    assert "limit: math alone" in compiled.report()


def test_what_has_no_columns_to_share_stays_as_it_is():
    b = Builder(Graph("g"))
    x = b.input("x", (64, 64), "float32")
    b.graph.outputs = [Output("y", b.matmul(x, b.sigmoid(x)).name, "float32")]
    target = Target.from_names("wormhole_b0", "Float16_b", "HiFi3")
    tiles = compilation().run_until(b.graph, "state_formats").forms[0].tiles
    assert share_products(tiles, target, 2, 0.0) is tiles
    found = place(tiles, target, Objective.from_options("default", "latency", 2, None))  # cut over two, as ever
    assert found.stages <= 2


def test_a_model_of_one_product_is_shared_out_and_saved_as_any_other(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    held = numpy_helper.from_array(np.ones((1024, 4096), np.float32) / 1024, "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1024])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4096])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="m")], "wide", [x], [y], [held])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.checker.check_model(model)
    compiled = compile_model(model, chips=4, objective="latency")
    assert set(chips_of(compiled).values()) == {0, 1, 2, 3}
    _, path = compiled.save(tmp_path)
    image = be.load_image(path)
    assert {queue.target_device for queue in image.netlist.queues.values()} == {0, 1, 2, 3}
    np.testing.assert_allclose(compiled(np.ones((1, 1024), np.float32))[0], np.ones((1, 4096)), rtol=1e-3)
