"""Placing: what the search enumerates, its cuts, rooms, microbatches and chips."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.place.blocks import CoreGrid
from buda_emu.compiler.search.evaluate import evaluate
from buda_emu.compiler.target import Objective
from buda_emu.netlist.load import check_text
from buda_emu.netlist.variants import resize_microbatch
from buda_emu.performance.timing.model import model_netlist

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def stack():
    """Six layers with a skip over each, wide enough to need more than one epoch of small grids."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(1)
    width = 512
    nodes, held, before = [], [], "x"
    for n in range(6):
        held.append(numpy_helper.from_array(rng.standard_normal((width, width), np.float32) / 22, f"w{n}"))
        nodes.append(helper.make_node("MatMul", [before, f"w{n}"], [f"h{n}"], name=f"h{n}"))
        nodes.append(helper.make_node("Sigmoid", [f"h{n}"], [f"s{n}"], name=f"s{n}"))
        nodes.append(helper.make_node("Add", [f"s{n}", before], [f"y{n}"], name=f"y{n}"))
        before = f"y{n}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [96, width])
    y = helper.make_tensor_value_info(before, TensorProto.FLOAT, [96, width])
    graph = helper.make_graph(nodes, "stack", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(2).standard_normal((96, 512)).astype(np.float32)


def cycles(compiled):
    """Of one input, with a host that is never waited for."""
    netlist = compiled.netlist
    run = model_netlist(netlist, [*netlist.programs.values()], {"$p_loop_count": "1"}, what_if={"host_gbps": 1000})
    return sum(run.programs().values()) / compiled.placement.inputs


def cells(compiled):
    """(epoch, chip, row, column) of every core of every op."""
    for placed in compiled.placement.ops.values():
        rows, columns = reversed(placed.blocks.grid) if placed.grid_transpose else placed.blocks.grid
        for row in range(placed.at[0], placed.at[0] + rows):
            for column in range(placed.at[1], placed.at[1] + columns):
                yield placed.epoch, placed.chip, row, column


def test_a_room_gives_the_first_free_rectangle():
    room = CoreGrid(3, 4)
    assert room.take((2, 3)) == (0, 0)
    assert room.take((3, 1)) == (0, 3)
    assert room.take((2, 1)) is None
    assert room.take((1, 3)) == (2, 0)
    assert room.free == 0


@pytest.mark.parametrize("arch", ["wormhole_b0", "grayskull", "blackhole"])
def test_more_effort_is_no_slower_and_every_core_has_one_op(stack, arch):
    paces, modelled = [], []
    for effort in ("low", "default", *(["high"] if arch == "wormhole_b0" else [])):
        compiled = compile_model(stack, arch=arch, effort=effort)
        assert compiled.check(strict=True) == ()
        taken = list(cells(compiled))
        assert len(set(taken)) == len(taken)
        paces.append(compiled.perf().inputs_per_second)
        modelled.append(cycles(compiled))
    assert paces == sorted(paces)
    assert modelled[0] > 1.5 * modelled[1]


def test_all_efforts_and_chips_give_the_same_bits(stack, x):
    (expected,) = compile_model(stack, effort="low", microbatch=1)(x)
    for options in ({}, {"chips": 2}, {"chips": 3, "effort": "low"}, {"objective": "cores"}, {"objective": "latency"}):
        compiled = compile_model(stack, **options)
        assert compiled.check(strict=True) == ()
        np.testing.assert_array_equal(compiled(x)[0], expected)
        np.testing.assert_array_equal(compiled(x)[0], expected)  # pointers go on


def test_chips_share_the_work(stack):
    one, copies = (compile_model(stack, chips=chips) for chips in (1, 2))
    pipeline = compile_model(stack, chips=2, objective="latency", microbatch=64)  # copies make no input quicker
    for two, gain in ((copies, 1.7), (pipeline, 1.15)):
        assert two.placement.chips == 2
        assert len(two.netlist.temporal_graphs) == two.placement.epochs
        assert cycles(one) > gain * cycles(two)
    assert (copies.placement.copies, pipeline.placement.copies) == (2, 1)
    # What was judged of one copy is what is modelled of the whole netlist.
    perf = copies.perf()
    assert perf.inputs == 2 * copies.placement.microbatch
    assert perf.inputs_per_second == pytest.approx(perf.run.clock * 1e6 / evaluate(copies.placement).cycles, rel=1e-3)
    assert "on 2 chips, each with all of them" in copies.report()


def test_copies_on_several_chips_take_inputs_in_turn_and_give_the_same_bits(stack, x, tmp_path):
    one, three = compile_model(stack, effort="low", microbatch=1), compile_model(stack, chips=3, microbatch=2)
    assert three.placement.copies == 3
    many = np.concatenate([x, 2 * x, x + 1, -x])
    (expected,) = one(many)
    np.testing.assert_array_equal(three(many)[0], expected)  # 3 + 1
    np.testing.assert_array_equal(three(x)[0], expected[:96])
    np.testing.assert_array_equal(three(many[96:288])[0], expected[96:288])
    assert three.compare([x]).layers  # by names without a chip's number
    # An image holds each constant once, and runs one input on the first chip.
    _, path = three.save(tmp_path)
    image = be.load_image(path)
    assert {queue.target_device for queue in image.netlist.queues.values()} == {0, 1, 2}
    assert {queue.target_device for queue in image.for_inputs.queues.values()} == {0}
    with image.emulator("ideal") as machine:
        (source,), (result,) = image.model.input_of, image.model.by_queue
        machine.push(source, image.host_input(source, x))
        machine.run("run_fwd_0", {"$p_loop_count": 1})
        np.testing.assert_array_equal(image.host_output(result, machine.pop(result)), expected[:96])


def test_latency_of_one_input_is_what_that_objective_shortens(stack):
    quick = compile_model(stack, objective="latency")
    many = compile_model(stack, microbatch=1, objective="cores")
    assert quick.placement.microbatch == 1
    assert quick.perf().cycles <= many.perf().cycles  # few cores load quickly, too


def test_the_fewest_cores(stack):
    def count(compiled):
        return sum(1 for _ in cells(compiled))

    assert count(compile_model(stack, objective="cores")) < count(compile_model(stack))


def test_a_round_of_one_has_the_results_of_a_round_of_many(stack, x):
    compiled = compile_model(stack, microbatch=4)
    assert {graph.input_count for graph in compiled.netlist.graphs.values()} == {4}
    queues = compiled.placement.queues.values()
    (source,), (result,) = ([queue.name for queue in queues if queue.role == role] for role in ("input", "output"))
    with be.Emulator(compiled.netlist, "ideal") as machine:
        for name, array in compiled.tensors():
            machine.push(name, array)
        for _ in range(2):
            machine.push(source, np.concatenate([compiled.io.queues({"x": x * n})[source] for n in range(1, 5)]))
            machine.run("run_fwd_0", {"$p_loop_count": 1})
            found = np.concatenate([machine.pop(result) for _ in range(4)])
    for n in range(1, 5):
        (alone,) = compiled(x * np.float32(n))
        np.testing.assert_array_equal(alone, compiled.io.outputs[0].from_queue(found[n - 1 : n]))


def test_the_microbatch_of_a_netlist_is_changed_everywhere(stack):
    netlist = compile_model(stack, microbatch=8, effort="low").netlist
    single = resize_microbatch(netlist, 1)
    direct = check_text(compile_model(stack, microbatch=1, effort="low").text).netlist
    assert {graph.input_count for graph in single.graphs.values()} == {1}
    fed = [queue for queue in direct.queues.values() if queue.type == "queue" and queue.entries > 1]
    assert {queue.name: single.queues[queue.name].entries for queue in fed} == {q.name: q.entries for q in fed}
    assert single.programs["run_fwd_0"] == direct.programs["run_fwd_0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effort": "most"}, "effort 'most' is not one of: low, default, high"),
        ({"objective": "power"}, "objective 'power' is not one of"),
        ({"chips": 0}, "chips 0 is not between 1 and"),
        ({"microbatch": 0}, "microbatch 0 is not between 1 and"),
        ({"arch": "grayskull", "chips": 2}, "chips of grayskull are not connected"),
    ],
)
def test_wrong_words_are_refused(stack, options, message):
    with pytest.raises(be.HostError, match=message):
        compile_model(stack, **options)


def test_words_become_an_aim():
    assert Objective.from_options("high", "latency", 2, None) == Objective("high", "latency", 2, 1)
    assert Objective.from_options("low", "throughput", 1, 5) == Objective("low", "throughput", 1, 5, firm=True)


def test_the_report_names_the_limits_and_what_each_epoch_waits_for(stack):
    text = compile_model(stack).report()
    for word in ("this placement", "first legal choice", "limit: math alone", "limit: host link", "limited by"):
        assert word in text


def one_line(*, taps=9, channels=64, groups=64):
    """A graph of one convolution of many rows, as the search sees it."""
    from buda_emu.compiler.graph.builder import Builder
    from buda_emu.compiler.graph.graph import Graph, Output

    b = Builder(Graph())
    rng = np.random.default_rng(0)
    width = round(taps**0.5)
    weights = rng.standard_normal((channels, channels // groups, width, width)).astype(np.float32)
    x = b.sigmoid(b.input("x", (1, channels, 32, 32), "float32"))
    pads = ((width // 2, width // 2),) * 2
    y = b.conv(x, b.constant(weights), strides=(1, 1), pads=pads, dilations=(1, 1), groups=groups)
    b.graph.outputs.append(Output("y", b.relu(y).name, "float32"))
    return b.graph


@pytest.mark.parametrize("groups", [1, 64])
def test_a_slow_picker_is_cut_whatever_product_reads_it(groups, monkeypatch):
    """Depthwise products, too; the same but for the order of the sums."""
    from buda_emu.compiler.compilation import Compilation, CompileOptions
    from buda_emu.compiler.compiled import CompiledModel
    from buda_emu.compiler.parted import evaluate
    from buda_emu.compiler.search import forms

    graph = one_line(groups=groups)
    monkeypatch.setattr(forms, "FRACTURES", (0.0,))
    compiled = CompiledModel(*Compilation.of(CompileOptions(microbatch=1)).place(graph))
    products = [placed.op for placed in compiled.placement.ops.values() if placed.op.name.count(".part.")]
    assert {op.type for op in products} == {"matmul" if groups == 1 else "depthwise"}
    assert len(products) == 9
    assert compiled.check() == ()
    x = np.random.default_rng(1).standard_normal((1, 64, 32, 32)).astype(np.float32)
    (found,) = compiled.run({"x": x})
    np.testing.assert_allclose(found, evaluate(graph, {"x": x})[graph.outputs[0].value], atol=1e-3)


def test_an_op_that_finds_no_room_stands_turned_by_a_quarter(stack):
    """Seven rows of cores beside seven by seven: only a column is left of the chip's eight, and rows below."""
    from dataclasses import replace

    from buda_emu.compiler.search.candidate_table import CandidateTable
    from buda_emu.compiler.search.pack import pack_on_chip

    compiled = be.compile(stack, effort="low")
    table = CandidateTable.of(compiled.placement.given, compiled.placement.target)
    choice = table.corrected[0][0]

    def shape(*grid):
        return [replace(choice, blocks=replace(choice.blocks, grid=grid))]

    fits = [shape(7, 7), shape(7, 1), shape(7, 1), shape(7, 1)]
    assert pack_on_chip(table, range(4), fits, 0, 0, grid_transpose=False) is None
    decisions = pack_on_chip(table, range(4), fits, 0, 0, grid_transpose=True)
    assert [(decision.at, decision.grid_transpose) for decision in decisions.values()] == [
        ((0, 0), False),
        ((0, 7), False),
        ((7, 0), True),
        ((8, 0), True),
    ]


def test_ops_that_stand_turned_compute_the_same(stack, x):
    """As the netlist says it: grid_transpose."""
    from dataclasses import replace

    from buda_emu.compiler.compiled import CompiledModel

    compiled = be.compile(stack, effort="low", microbatch=1)
    (wanted,) = compiled.run({"x": x})
    compiled.close()
    placement = compiled.placement
    last = {item.epoch: name for name, item in placement.ops.items()}  # of each epoch, which has the last rows free
    placement.ops |= {
        name: replace(placement.ops[name], grid_transpose=True, at=(10 - placement.ops[name].blocks.grid[1], 0))
        for name in last.values()
    }
    transposed = CompiledModel(compiled.graph, placement, "transposed")
    assert transposed.text.count("grid_transpose: true") == len(last)
    assert transposed.check() == ()
    (found,) = transposed.run({"x": x})
    np.testing.assert_array_equal(found, wanted)
