"""Where ops and queues stand in the pictures of netlists."""

from dataclasses import replace
from itertools import combinations

import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.report.pictures.floorplan import CELL, INSET, LANE, NARROW, Box, memory, panels
from example_netlists import DIRECTORY
from shared_files import corpus_files
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

EXAMPLES = sorted(DIRECTORY.glob("*.yaml"))


def load_netlist(*args, **more):
    netlist = check_text(text(*args, **more)).netlist
    assert netlist is not None
    return netlist


def boxes(panel):
    return [*panel.ops.items(), *panel.queues.items(), *panel.elsewhere.items()]


def assert_sound(panel):
    """Nothing lies on something else or outside, and every edge has its ends."""
    for (one, a), (other, b) in combinations(boxes(panel), 2):
        assert not a.overlaps(b), (one, other)
    width, height = panel.size
    for name, box in boxes(panel):
        assert box.x >= 0, name
        assert box.y >= 0, name
        assert box.x + box.width <= width, name
        assert box.bottom <= height, name
    for edge in panel.edges:
        assert panel.box(edge.source) is not panel.box(edge.target)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_panels_of_the_examples(path):
    netlist = be.load(path)
    drawn = list(panels(netlist))
    assert [panel.graph for panel in drawn] == [name for one in netlist.temporal_graphs for name in one.graphs]
    for panel in drawn:
        assert_sound(panel)
        assert list(panel.ops) == [one.name for one in netlist.graphs[panel.graph].ops]
        for name in panel.ops:
            assert {edge.source for edge in panel.edges if edge.target == name} == set(netlist.ops[name].inputs)
    assert {name for panel in drawn for name in panel.queues} == set(netlist.queues)


@pytest.mark.parametrize("path", corpus_files("netlists/**/*.yaml")[::150])
def test_the_panels_of_real_netlists(path):
    netlist = be.check(path).netlist
    if netlist is None:
        return  # a netlist that is meant to be refused
    for panel in panels(netlist):
        assert_sound(panel)


def test_ops_cover_their_cores():
    netlist = load_netlist(
        [queue("a"), queue("o", "far")],
        [graph("g", op("near", "nop", ["a"]), op("far", "nop", ["near"], loc=(3, 5)))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    (panel,) = panels(netlist)
    rows, cols = netlist.arch.grid
    assert (len(panel.rows), len(panel.columns)) == (rows, cols)
    assert [height for _, height in panel.rows] == [CELL[1] if row in (0, 3) else NARROW[1] for row in range(rows)]
    assert [width for _, width in panel.columns] == [CELL[0] if col in (0, 5) else NARROW[0] for col in range(cols)]
    x, y = panel.columns[5][0], panel.rows[3][0]
    assert panel.ops["far"] == Box(x + INSET, y + INSET, CELL[0] - 2 * INSET, CELL[1] - 2 * INSET)
    assert panel.queues["a"].x < panel.ops["near"].x < panel.ops["far"].x < panel.queues["o"].x


def test_transposed_ops_take_columns_for_rows():
    one = next(iter(be.load(DIRECTORY / "matmul.yaml").ops.values()))
    assert one.cores == (2, 1)
    assert replace(one, grid_transpose=True).cores == (1, 2)


def test_the_memory_of_a_queue_in_words():
    netlist = be.load(DIRECTORY / "matmul.yaml")
    a_buffer = netlist.queues["out"].buffers[0]

    def lies(*channels, loc="dram"):
        buffers = tuple(replace(a_buffer, channel=channel) for channel in channels)
        return memory(replace(netlist.queues["out"], buffers=buffers, loc=loc))

    assert lies(3) == lies(3, 3) == "DRAM channel 3"
    assert lies(4, 3, 5) == "DRAM channels 3-5"
    assert lies(0, 2) == "DRAM channels 0, 2"
    assert lies(0, loc="host") == "host memory"


def test_queues_stand_with_others_of_their_memory():
    netlist = be.load(DIRECTORY / "attention.yaml")
    for panel in panels(netlist):
        for name, box in panel.queues.items():
            (group,) = [group for group in panel.groups if group.box.overlaps(box)]
            assert group.name == memory(netlist.queues[name])
        for one, other in combinations(panel.groups, 2):
            assert not one.box.overlaps(other.box)


def test_many_queues_take_several_lanes():
    names = [f"q{number}" for number in range(60)]
    adds = [op("s1", "add", names[:2])] + [
        op(f"s{number}", "add", [f"s{number - 1}", name], loc=(number // 8, number % 8))
        for number, name in enumerate(names[2:], 2)
    ]
    netlist = load_netlist(
        [*(queue(name) for name in names), queue("o", "s59")],
        [graph("g", *adds)],
        [program("p", "var: {$c_zero: 0}", execute("g", *(fifo_settings(name) for name in names)))],
    )
    (panel,) = panels(netlist)
    assert_sound(panel)
    left = {box.x for name, box in panel.queues.items() if name != "o"}
    assert 1 < len(left) <= 4
    assert all(b - a >= LANE for a, b in zip(sorted(left), sorted(left)[1:], strict=False))


def test_a_queue_that_is_read_and_written_stands_once():
    netlist = be.load(DIRECTORY / "training.yaml")
    both = [
        (panel, name)
        for panel in panels(netlist)
        for name, one in netlist.queues.items()
        if one.input in panel.ops and any(name in netlist.ops[reader].inputs for reader in panel.ops)
    ]
    assert both
    for panel, name in both:
        assert {(netlist.queues[name].input, name)} <= {(edge.source, edge.target) for edge in panel.edges}
        assert any(edge.source == name for edge in panel.edges)


def test_ops_of_other_chips_stand_in_the_lanes():
    netlist = be.load(DIRECTORY / "two_chips.yaml")
    elsewhere = {name: panel.chip for panel in panels(netlist) for name in panel.elsewhere}
    assert elsewhere
    assert all(netlist.ops[name].target_device != chip for name, chip in elsewhere.items())


def test_selected_epochs_and_chips():
    netlist = be.load(DIRECTORY / "two_chips.yaml")
    assert {panel.chip for panel in panels(netlist)} == {0, 1}
    assert {panel.chip for panel in panels(netlist, chips=[1])} == {1}
    assert list(panels(netlist, epochs=[9])) == []
