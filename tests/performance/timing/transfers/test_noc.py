"""Ways over the NoC, and what each link carries."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import buda_emu as be
from buda_emu.netlist.load import check_text, load
from buda_emu.performance.timing.model import epochs, model_netlist
from buda_emu.performance.timing.transfers.flows import flows
from buda_emu.performance.timing.transfers.noc import Crossing, Link, Port, loads, paths, route
from buda_emu.spec.devices import device
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

WORMHOLE = device("wormhole_b0")
CORES = st.tuples(st.integers(0, 9), st.integers(0, 11))


def test_noc_0_goes_right_then_down_and_noc_1_up_then_left():
    assert [str(link) for link in route(0, 0, (1, 1), (3, 2), (10, 12))] == [
        "NoC 0 1-1 right, chip 0",
        "NoC 0 2-1 right, chip 0",
        "NoC 0 3-1 down, chip 0",
    ]
    assert [(link.x, link.y, link.way) for link in route(2, 1, (1, 1), (0, 11), (10, 12))] == [
        (1, 1, "up"),
        (1, 0, "up"),
        (1, 11, "left"),
    ]


@given(CORES, CORES, st.sampled_from([0, 1]))
def test_a_way_is_connected_and_never_longer_than_once_around(start, end, noc):
    links = list(route(0, noc, start, end, (10, 12)))
    assert len(set(links)) == len(links) <= 9 + 11
    back = list(route(0, 1 - noc, end, start, (10, 12)))
    assert len(back) == len(links)  # the other NoC goes the same distance back


def model(ops, queues, inputs=4):
    run = program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a"), fifo_settings("b")))
    found = check_text(text(queues, [graph("g", *ops, inputs=inputs)], [run]))
    assert found.netlist is not None, found.diagnostics
    (epoch,) = epochs(found.netlist, list(found.netlist.programs.values()), {})
    edges = flows(found.netlist, epoch.temporal, epoch.executes)
    return list(zip(edges, paths(found.netlist, edges, WORMHOLE), strict=True))


def two_queues(**shape):
    return [queue("a", df="Float16_b", **shape), queue("b", df="Float16_b", **shape)]


def test_one_core_to_its_neighbour():
    found = model(
        [op("m", "add", ["a", "b"], loc=(0, 0), df="Float16_b"), op("n", "nop", ["m"], loc=(0, 1), df="Float16_b")],
        [*two_queues(), queue("o", "n", df="Float16_b")],
    )
    (way,) = [path for edge, path in found if (edge.source, edge.target) == ("m", "n")]
    assert way.links == {Link(0, 0, 1, 1, "right"): 2080}  # logical [0, 0] is 1-1; a tile with its header
    assert not way.gathers
    writes = [path for edge, path in found if edge.operand < 0]
    assert {link.noc for path in writes for link in path.links} == {1}


def test_an_op_on_fewer_cores_than_its_producer_gathers():
    wide = op("m", "add", ["a", "b"], loc=(0, 0), df="Float16_b").replace("grid_size: [1, 1]", "grid_size: [1, 4]")
    found = model(
        [wide, op("n", "nop", ["m"], loc=(1, 0), df="Float16_b", mblock=(1, 4))],
        [*two_queues(mblock=(1, 4)), queue("o", "n", df="Float16_b", mblock=(1, 4))],
    )
    (way,) = [path for edge, path in found if (edge.source, edge.target) == ("m", "n")]
    assert way.gathers
    assert way.links[Link(0, 0, 1, 1, "down")] == 4 * 2080  # NoC 0 wraps around to column 1, then all go down


def test_operands_of_a_matmul_are_sent_once_along_rows_and_columns(root):
    netlist = load(root / "netlists/matmul.yaml")
    (epoch, *_) = epochs(netlist, list(netlist.programs.values()), {"$p_loop_count": "1"})
    edges = flows(netlist, epoch.temporal, epoch.executes)
    found = list(zip(edges, paths(netlist, edges, WORMHOLE), strict=True))
    (product,) = [op for op in netlist.ops.values() if op.type == "matmul"]
    for edge, path in found:
        if edge.target == product.name and edge.operand in (0, 1):
            groups = product.blocking.grid_size[edge.operand]
            assert 0 < max(path.links.values()) <= groups * edge.core_bytes * 1.0001


def test_what_is_loaded_once_does_not_count():
    found = model(
        [op("m", "add", ["a", "b"], loc=(0, 0), df="Float16_b")], [*two_queues(), queue("o", "m", df="Float16_b")]
    )
    edge, path = found[0]
    assert loads([(edge, path)]) == pytest.approx({**path.links, **path.ports})
    assert loads([(replace(edge, once=True), path)]) == {}
    assert loads([(replace(edge, once=True), path)], once=True) == loads([(edge, path)])


def test_a_tensor_goes_through_the_port_once_for_each_reader():
    """PERF 5.2: 65,536 bytes an input and six readers are 14,000 cycles of one core's port."""
    shape = {"df": "Float16_b", "mblock": (4, 8)}  # 32 tiles of 2,080 bytes with their headers
    readers = [op(f"r{n}", "nop", ["m"], loc=(1 + n, 1), **shape) for n in range(6)]
    outs = [queue(f"o{n}", f"r{n}", **shape).replace("dram: [[0", f"dram: [[{n}") for n in range(6)]
    run = program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))
    source = op("m", "nop", ["a"], loc=(0, 0), **shape)
    checked = check_text(text([queue("a", **shape), *outs], [graph("g", source, *readers, inputs=32)], [run]))
    assert checked.netlist is not None, checked.diagnostics
    (epoch,) = model_netlist(checked.netlist, list(checked.netlist.programs.values()), {}).epochs
    needed = 6 * 32 * 2080 / 28.1
    assert needed > 14_000
    assert needed <= epoch.pace <= 1.05 * needed  # and the latency of each part
    assert (epoch.bottleneck.kind, epoch.bottleneck.name) == ("link", "NoC 0 out of core 1-1, chip 0")
    assert "it carries m > r0 17 %, m > r1 17 %" in epoch.bottleneck.sentence
    assert epoch.bottleneck.caveat in epoch.bottleneck.sentence
    assert epoch.bottleneck.caveat == (
        "NoC 0 out of core 1-1, chip 0 works over 90 % of the time: this part of the model was not compared "
        "with silicon"
    )


def test_what_a_row_of_cores_shares_leaves_its_source_once_and_enters_each():
    product = op("p", "matmul", ["m", "b"], loc=(1, 0), df="Float16_b", more=", attributes: {m_k: 1, u_kt: 1}")
    wide = [queue("b", df="Float16_b"), queue("o", "p", df="Float16_b")]
    places = ", ".join(f"[{number}, {0x30000000 + 0x1000000 * number:#x}]" for number in range(4))
    wide = [re.sub(r"dram: \[\[.*\]\]", f"dram: [{places}]", line) for line in wide]
    product, *wide = (line.replace("grid_size: [1, 1]", "grid_size: [1, 4]") for line in (product, *wide))
    wide[1] = wide[1].replace("0x3", "0x2")
    found = model([op("m", "nop", ["a"], loc=(0, 0), df="Float16_b"), product], [queue("a", df="Float16_b"), *wide])
    (path,) = [path for edge, path in found if edge.target == "p" and edge.operand == 0]
    assert path.ports == {
        Port("core", "out of", 0, 0, 1, 1): 2080,
        **{Port("core", "into", 0, 0, x, 2): 2080 for x in (1, 2, 3, 4)},
    }


def test_a_port_carries_all_operands_of_a_core(root):
    found = model(
        [op("m", "add", ["a", "b"], loc=(0, 0), df="Float16_b")], [*two_queues(), queue("o", "m", df="Float16_b")]
    )
    ways = loads(found)
    assert ways[Port("core", "into", 0, 0, 1, 1)] == 2 * 2080
    assert ways[Port("core", "out of", 0, 1, 1, 1)] == 2080
    assert ways[Port("DRAM", "out of", 0, 0, 0, 0)] == 2 * 2080  # both lie in channel 0
    assert ways[Port("DRAM", "into", 0, 1, 0, 0)] == 2080


def test_all_that_goes_to_another_chip_shares_the_links_between_them(root):
    path = root / "netlists/two_chips.yaml"
    (epoch,) = be.perf(path).epochs
    crossing = [(edge, way) for edge, way in zip(epoch.edges, epoch.paths, strict=True) if edge.crosses]
    assert crossing
    for edge, way in crossing:
        assert not way.links
        assert set(way.ports) == {Crossing(0, 1)}, edge
    total = loads(crossing)[Crossing(0, 1)]
    assert total == sum(way.ports[Crossing(0, 1)] for _, way in crossing)
    assert be.perf(path, what_if={"eth_gbps": 0.1}).epochs[0].pace >= total / 0.1


@pytest.mark.parametrize(
    ("tile", "rate"), [(64, 2.75), (128, 5.5), (384, 14.05), (1024, 27.4), (1536, 28.7), (8192, 30.0)]
)
def test_small_packets_are_slow(tile, rate):
    from buda_emu.performance.timing.transfers.rates import speed

    assert speed(WORMHOLE, {}).rates().of_packets(tile) == pytest.approx(rate)
