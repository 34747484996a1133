"""NETLIST 1.7, 11.1 A3."""

import pytest

from buda_emu.netlist import build as expand
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Allocate, Buffer, Execute, Netlist
from netlist.netlist_texts import NETLIST, edited, found, rules

PARALLEL = NETLIST.replace("target_device: 0", "target_device: [0, 1]")


def accepted(text: str) -> Netlist:
    netlist = check_text(text).netlist
    assert netlist is not None, check_text(text).diagnostics
    return netlist


def test_queues_become_one_copy_for_each_chip() -> None:
    netlist = accepted(PARALLEL)
    assert list(netlist.queues) == ["src.0", "src.1", "dst.0", "dst.1"]
    assert [(item.name, item.written_name, item.target_device) for item in netlist.queues.values()] == [
        ("src.0", "src", 0),
        ("src.1", "src", 1),
        ("dst.0", "dst", 0),
        ("dst.1", "dst", 1),
    ]
    assert [item.input for item in netlist.queues.values()] == ["HOST", "HOST", "copy.0", "copy.1"]
    assert netlist.queues["src.0"].source is netlist.queues["src.1"].source


def test_graphs_ops_and_their_inputs_get_the_suffix() -> None:
    netlist = accepted(PARALLEL)
    assert [(graph.name, graph.target_device) for graph in netlist.graphs.values()] == [("fwd.0", 0), ("fwd.1", 1)]
    ops = netlist.ops
    assert list(ops) == ["copy.0", "copy.1"]
    assert (ops["copy.1"].inputs, ops["copy.1"].graph, ops["copy.1"].target_device) == (("src.1",), "fwd.1", 1)
    assert ops["copy.1"].written_name == "copy"


def test_an_execute_becomes_one_for_each_chip() -> None:
    executes = [item for item in accepted(PARALLEL).programs["run"].instructions if isinstance(item, Execute)]
    assert [(item.graph, [setting.queue for setting in item.queue_settings]) for item in executes] == [
        ("fwd.0", ["src.0"]),
        ("fwd.1", ["src.1"]),
    ]


def test_allocations_name_every_copy() -> None:
    text = PARALLEL.replace("    - endloop", "    - allocate_queue: [dst]\n    - endloop")
    (allocate,) = [item for item in accepted(text).programs["run"].instructions if isinstance(item, Allocate)]
    assert allocate.queues == ("dst.0", "dst.1")


def test_host_copies_stay_on_the_first_chip_one_buffer_further() -> None:
    text = PARALLEL.replace("loc: dram, dram: [[0, 0x20000000]]", "loc: host, host: [0x1000]")
    src = [accepted(text).queues[name] for name in ("src.0", "src.1")]
    assert [queue.target_device for queue in src] == [0, 0]
    # 2 entries of 1 * 2*1 * 1*2 tiles of 2048 + 16 rounded up to 2080 bytes, and a header of 32 bytes
    assert [queue.buffers for queue in src] == [(Buffer(0, 0x1000),), (Buffer(0, 0x1000 + 2 * 4 * 2080 + 32),)]


def test_all_further_host_copies_move_by_one_buffer() -> None:
    text = NETLIST.replace("target_device: 0", "target_device: [3, 0, 1]")
    text = text.replace("loc: dram, dram: [[0, 0x20000000]]", "layout: flat, loc: host, host: [0x1000]")
    src = [accepted(text).queues[f"src.{device}"] for device in (3, 0, 1)]
    moved = 0x1000 + 2 * 4 * 2080 + 32  # NETLIST 1.7: with tile headers, even where the data is flat
    assert [queue.buffers[0].address for queue in src] == [0x1000, moved, moved]


def test_a_list_of_one_chip_gets_the_suffix() -> None:
    assert list(accepted(NETLIST.replace("target_device: 0", "target_device: [0]")).queues) == ["src.0", "dst.0"]


def test_op_fed_host_queues_on_several_chips_are_refused() -> None:
    text = PARALLEL.replace("loc: dram, dram: [[1, 0x21000000]]", "loc: host, host: [0x1000]")
    assert "V016" in rules(text)


def test_a_queue_may_name_the_copy_that_feeds_it() -> None:
    lines = PARALLEL.splitlines(keepends=True)
    lines[3] = lines[3].replace("input: copy", "input: copy.1").replace("target_device: [0, 1]", "target_device: 1")
    assert accepted("".join(lines)).queues["dst"].input == "copy.1"


def test_settings_of_a_graph_on_one_chip_go_to_every_copy_of_the_queue() -> None:
    text = edited("dst: {input: copy,", "dst: {input: copy,", NETLIST)
    head, tail = text.split("  dst:")
    document = head.replace("target_device: 0", "target_device: [0, 1]") + "  dst:" + tail
    from buda_emu.netlist.build import build
    from buda_emu.netlist.reader import read_document
    from buda_emu.netlist.yaml_reader import read_tree

    netlist = build(read_document(read_tree(document), "net.yaml", None))
    (execute,) = [item for item in netlist.programs["run"].instructions if isinstance(item, Execute)]
    assert [setting.queue for setting in execute.queue_settings] == ["src.0", "src.1"]


def test_an_empty_list_leaves_no_queue() -> None:
    head, tail = NETLIST.split("  dst:")
    assert "V017" in rules(head.replace("target_device: 0", "target_device: []") + "  dst:" + tail)


def test_a_finding_about_all_copies_is_reported_once() -> None:
    (finding,) = found(PARALLEL.replace("math_fidelity: HiFi3, ", ""))
    assert finding.rule == "V025"


def test_the_number_of_copies_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand, "MAX_COPIES", 5)
    (finding,) = found(PARALLEL)
    assert finding.rule == "V000"
    assert "6 copies" in finding.diagnostic.message
