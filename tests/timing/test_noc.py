"""Ways over the NoC, and what each link carries."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.netlist.load import check_text, load
from buda_emu.spec.devices import device
from buda_emu.timing.flows import flows
from buda_emu.timing.noc import Link, loads, paths, route
from buda_emu.timing.program import epochs
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

WORMHOLE = device("wormhole_b0")
CORES = st.tuples(st.integers(0, 9), st.integers(0, 11))


def test_noc_0_goes_right_then_down_and_noc_1_up_then_left():
    assert [str(link) for link in route(0, 0, (1, 1), (3, 2), (10, 12))] == [
        "NoC 0 1-1 right, chip 0", "NoC 0 2-1 right, chip 0", "NoC 0 3-1 down, chip 0",
    ]  # fmt: skip
    assert [(link.x, link.y, link.way) for link in route(2, 1, (1, 1), (0, 11), (10, 12))] == [
        (1, 1, "up"), (1, 0, "up"), (1, 11, "left"),
    ]  # fmt: skip


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
    )  # fmt: skip
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
    )  # fmt: skip
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
    found = model([op("m", "add", ["a", "b"], loc=(0, 0), df="Float16_b")],
                  [*two_queues(), queue("o", "m", df="Float16_b")])  # fmt: skip
    edge, path = found[0]
    assert loads([(edge, path)]) == pytest.approx(path.links)
    assert loads([(replace(edge, once=True), path)]) == {}
