"""Graphs in DOT: what the example netlists do not have (tests/app/cli/verbs/test_graph.py has the rest)."""

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.report.pictures.dot import dot
from example_netlists import DIRECTORY
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

NETLIST = be.load(DIRECTORY / "two_chips.yaml")


def test_ops_of_chips_that_are_not_asked_for_stand_dashed():
    crossing = {
        source: one.target_device
        for one in NETLIST.ops.values()
        for source in one.inputs
        if source in NETLIST.ops and NETLIST.ops[source].target_device != one.target_device
    }
    assert crossing
    for source, chip in crossing.items():
        part = dot(NETLIST, chips=[chip])
        assert f'"op:{source}" [style=dashed, label="{source}"];' in part
        assert "style=dashed" not in dot(NETLIST)


def test_queues_that_have_nothing_to_do_with_the_asked_part_are_left_out():
    for chip in (0, 1):
        part = dot(NETLIST, chips=[chip])
        for name, one in NETLIST.queues.items():
            readers = [reader for reader in NETLIST.ops.values() if name in reader.inputs]
            near = [*readers, *([NETLIST.ops[one.input]] if not one.host_fed else [])]
            shown = any(item.target_device == chip for item in near)
            assert (f'"queue:{name}" [shape=cylinder' in part) is shown, (chip, name)


def test_an_op_and_a_queue_of_one_name_and_an_input_taken_twice():
    netlist = check_text(
        text(
            [queue("x"), queue("o", "s")],
            [graph("g", op("s", "add", ["x", "x"], df="Float16_b"))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("x")))],
        ).replace("Float32", "Float16_b")
    ).netlist
    assert netlist is not None
    assert dot(netlist).count('  "queue:x" -> "op:s" [label="Float16_b"];\n') == 2


def test_labels_say_type_shape_format_and_memory():
    netlist = be.load(DIRECTORY / "matmul.yaml")
    lines = dot(netlist)
    assert 'label="product\\nmatmul\\n1x128x192 Float16_b"' in lines
    assert 'label="weights\\nram 1 x 1x256x192 Bfp8_b\\nDRAM channel 1"' in lines
    assert 'label="epoch 0, chip 0: multiply x 2"' in lines
