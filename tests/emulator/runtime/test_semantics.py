"""Rules of queues, rams and executes that real netlists do not pin down (NETLIST 4, corpus README)."""

import numpy as np
import pytest

import buda_emu as be
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

ZERO = "var: {$c_zero: 0}"


def entries(*values, shape=(1, 32, 32)):
    return np.stack([np.full(shape, value, np.float32) for value in values])


def firsts(array):
    return array[:, 0, 0, 0].tolist()


def test_streamed_entries_come_out_in_order(load):
    net = load(
        text(
            [queue("a"), queue("o", "n")],
            [graph("g", op("n", "nop", ["a"]), inputs=2)],
            [
                program(
                    "p",
                    ZERO,
                    "staticvar: {$rd: 0}",
                    "loop: 2",
                    execute("g", fifo_settings("a", "$rd", "$rd")),
                    "varinst: [$rd, incwrap, 2, 8]",
                    "endloop",
                )
            ],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2, 3, 4))
        emu.run("p")
        assert firsts(emu.outputs("raw")["o"]) == [1, 2, 3, 4]
        # the varinst popped the inputs, so there is room for four more
        emu.push("a", entries(5, 6, 7, 8))
        assert firsts(emu.pop("o", 4)) == [1, 2, 3, 4]
        emu.run("p")
        assert firsts(emu.peek("o")) == [5, 6, 7, 8]


def test_local_pointer_goes_back_to_its_base_after_an_execute(load):  # NETLIST 4.3 step 5
    net = load(
        text(
            [queue("a"), queue("o", "n")],
            [graph("g", op("n", "nop", ["a"]), inputs=2)],
            [program("p", ZERO, execute("g", fifo_settings("a")), execute("g", fifo_settings("a")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2, 3, 4))
        emu.run("p")
        assert firsts(emu.peek("o")) == [1, 2, 1, 2]


def test_prologue_serves_every_input_with_the_same_entry(load):
    net = load(
        text(
            [queue("a"), queue("w", entries=2), queue("o", "n")],
            [graph("g", op("n", "add", ["a", "w"]), inputs=3)],
            [
                program(
                    "p",
                    ZERO,
                    execute(
                        "g",
                        fifo_settings("a", more=", rd_ptr_autoinc: 1, global_rdptr_autoinc: 1"),
                        fifo_settings("w", prologue="true"),
                    ),
                )
            ],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2, 3))
        emu.push("w", entries(10, 20))
        emu.run("p")
        assert firsts(emu.peek("o")) == [11, 12, 13]
        assert emu.peek("a").shape[0] == 0, "global_rdptr_autoinc pops one entry for each input"


def gradient_net(load, *, zero="false", inputs=2, relu=""):
    return load(
        text(
            [queue("a"), queue("acc", "n", kind="ram", entries=1)],
            [graph("g", op("n", "nop", ["a"], more=f", gradient_op: true{relu}"), inputs=inputs)],
            [
                program(
                    "p",
                    ZERO,
                    execute("g", fifo_settings("a"), ram_settings("acc", prologue="true", epilogue="true", zero=zero)),
                )
            ],
        )
    )


def test_a_gradient_starts_from_what_the_ram_holds(load):  # deviation NETLIST 9.2
    with be.Emulator(gradient_net(load), threads=1) as emu:
        emu.push("a", entries(1, 2))
        emu.push("acc", entries(100))
        emu.run("p")
        assert firsts(emu.outputs("raw")["acc"]) == [103]
        emu.push("acc", entries(7))  # a host write between runs is seen
        emu.run("p")
        assert firsts(emu.outputs("raw")["acc"]) == [10]


def test_a_gradient_into_an_unwritten_ram_starts_at_the_first_result(load):
    with be.Emulator(gradient_net(load), threads=1) as emu:
        emu.push("a", entries(1, 2))
        emu.run("p")
        assert firsts(emu.outputs("raw")["acc"]) == [3]


def test_zero_clears_the_accumulation_before_the_first_input_only(load):
    with be.Emulator(gradient_net(load, zero="true"), threads=1) as emu:
        emu.push("a", entries(1, 2))
        emu.push("acc", entries(100))
        emu.run("p")
        assert firsts(emu.outputs("raw")["acc"]) == [3]
        emu.run("p")
        assert firsts(emu.outputs("raw")["acc"]) == [3]


def test_the_sum_is_taken_before_relu(load):  # NETLIST 4.4
    net = gradient_net(load, relu=", attributes: {relu_en: true, relu_mode: min, relu_threshold: 0.0}")
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(-5, 7))
        emu.push("acc", entries(1))
        emu.run("p")
        assert firsts(emu.outputs("raw")["acc"]) == [7]  # relu(1 - 5) = 0, relu(0 + 7) = 7


def test_zero_without_prologue_fails(load):
    net = load(
        text(
            [queue("a"), queue("o", "n", kind="ram", entries=1)],
            [graph("g", op("n", "nop", ["a"]))],
            [program("p", ZERO, execute("g", fifo_settings("a"), ram_settings("o", zero="true")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1))
        with pytest.raises(be.ProgramError, match=r"instruction 1 .*zero without prologue"):
            emu.run("p")


def test_a_feedback_ram_is_read_with_its_old_content(load):  # NETLIST 4.2
    net = load(
        text(
            [queue("a"), queue("r", "n", kind="ram", entries=1)],
            [graph("g", op("n", "add", ["a", "r"]), inputs=3)],
            [program("p", ZERO, execute("g", fifo_settings("a", more=", global_rdptr_autoinc: 1"), ram_settings("r")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2, 3))
        emu.push("r", entries(10))
        emu.run("p")
        assert firsts(emu.outputs("raw")["r"]) == [16]


@pytest.mark.parametrize("ops", [["w", "n"], ["n", "w"]])
def test_a_nop_of_a_ram_stores_what_the_ram_held_before(load, ops):
    half = "Float16_b"  # Float32 would be truncated, which makes a copy
    text_of = {"w": op("w", "nop", ["a"], df=half), "n": op("n", "nop", ["r"], loc=(0, 1), df=half)}
    net = load(
        text(
            [queue("a", df=half), queue("r", "w", kind="ram", entries=1, df=half), queue("o", "n", df=half)],
            [graph("g", *(text_of[name] for name in ops), inputs=2)],
            [program("p", ZERO, execute("g", fifo_settings("a"), ram_settings("r")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2))
        emu.push("r", entries(10))
        emu.run("p")
        assert firsts(emu.peek("o")) == [10, 1]


def test_nops_after_each_other_into_several_queues(load):
    class Watch(be.Listener):
        def op_value(self, op, value, _):
            seen[op.name] = value[:, 0, 0].tolist()

    seen: dict[str, list[float]] = {}
    net = load(
        text(
            [queue("a"), queue("o", "n"), queue("p", "m"), queue("q", "m", kind="ram", entries=1), queue("r", "s")],
            [
                graph(
                    "g",
                    op("x", "add", ["a", "a"]),
                    op("n", "nop", ["x"], loc=(0, 1)),
                    op("m", "datacopy", ["n"], loc=(0, 2)),
                    op("s", "add", ["m", "n"], loc=(0, 3)),
                    inputs=2,
                )
            ],
            [program("p", ZERO, execute("g", fifo_settings("a"), ram_settings("q")))],
        )
    )
    for listeners in ((), (Watch(),)):
        with be.Emulator(net, threads=1, listeners=listeners) as emu:
            emu.push("a", entries(1, 2))
            emu.run("p")
            found = {name: firsts(array) for name, array in emu.outputs("raw").items()}
        assert found == {"o": [2, 4], "p": [2, 4], "q": [4], "r": [4, 8]}
    assert seen == {"x": [2, 4], "n": [2, 4], "m": [2, 4], "s": [4, 8]}


def test_a_queue_between_two_ops_of_one_graph_hands_over_the_same_input(load):
    net = load(
        text(
            [queue("a"), queue("e2e", "n", entries=2), queue("o", "m")],
            [graph("g", op("n", "nop", ["a"]), op("m", "nop", ["e2e"], loc=(0, 1)), inputs=4)],
            [
                program(
                    "p", ZERO, execute("g", fifo_settings("a"), fifo_settings("e2e", more=", global_rdptr_autoinc: 1"))
                )
            ],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2, 3, 4))
        emu.run("p")
        assert firsts(emu.peek("o")) == [1, 2, 3, 4]
        assert "e2e" not in emu.outputs("raw")


def test_an_op_that_fills_a_queue_beyond_its_entries_fails(load):  # deviation NETLIST 9.1
    net = load(
        text(
            [queue("a"), queue("o", "n", entries=2)],
            [graph("g", op("n", "nop", ["a"]), inputs=4)],
            [program("p", ZERO, execute("g", fifo_settings("a")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2, 3, 4))
        with pytest.raises(be.ProgramError, match=r"graph g: push to a full queue: queue o \(entries 2"):
            emu.run("p")


def test_two_chips_run_as_one_temporal_graph(load):  # NETLIST 1.8, 4.3
    net = load(
        text(
            [queue("a"), queue("o", "m", device=1)],
            [graph("g0", op("n", "nop", ["a"]), inputs=2), graph("g1", op("m", "nop", ["n"]), inputs=2, device=1)],
            [program("p", ZERO, execute("g1"), execute("g0", fifo_settings("a")))],
        )
    )
    assert [set(temporal.graphs) for temporal in net.temporal_graphs] == [{"g0", "g1"}]
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2))
        emu.run("p")
        assert firsts(emu.peek("o")) == [1, 2]


def test_back_to_back_graphs_on_different_chips_become_one(load):  # NETLIST 1.8
    net = load(
        text(
            [queue("a"), queue("b", device=1), queue("o", "n"), queue("u", "m", device=1)],
            [graph("g0", op("n", "nop", ["a"])), graph("g1", op("m", "nop", ["b"]), device=1)],
            [program("p", ZERO, execute("g0", fifo_settings("a")), execute("g1", fifo_settings("b")))],
        )
    )
    assert len(net.temporal_graphs) == 1
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1))
        emu.push("b", entries(2))
        emu.run("p")
        assert (firsts(emu.peek("o")), firsts(emu.peek("u"))) == ([1], [2])


def test_executing_a_graph_twice_before_its_group_is_complete_fails(load):
    net = load(
        text(
            [queue("a"), queue("o", "m", device=1)],
            [graph("g0", op("n", "nop", ["a"])), graph("g1", op("m", "nop", ["n"]), device=1)],
            [program("p", ZERO, execute("g0", fifo_settings("a")), execute("g0", fifo_settings("a")), execute("g1"))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1))
        with pytest.raises(be.ProgramError, match="twice before"):
            emu.run("p")


def test_bfp4_op_inputs_and_outputs_truncate_where_a_push_rounds(load):  # FORMATS 4 "Which mode when"
    net = load(
        text(
            [queue("a", df="Float16_b"), queue("o", "n", df="Bfp4_b")],
            [graph("g", op("n", "nop", ["a"], df="Float16_b", out_df="Bfp4_b"))],
            [program("p", ZERO, execute("g", fifo_settings("a")))],
        )
    )
    values = entries(1.0)
    values[0, 0, 0, 1] = 1.375  # Bfp4_b steps of 0.25 under 1.0: between 1.25 and 1.5
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", values)
        emu.run("p")
        assert emu.peek("o", readout="raw")[0, 0, 0, 1] == 1.25
    with be.Emulator(net, precision="ideal", threads=1) as emu:
        emu.push("a", values)
        emu.run("p")
        assert emu.peek("o", readout="raw")[0, 0, 0, 1] == 1.375


def test_float32_is_truncated_to_tf32_at_the_first_op_only_and_on_wormhole_only(load):  # OPS 3.1
    fine = np.float32(1 + 2.0**-20)
    for arch, first in (("wormhole_b0", 1.0), ("blackhole", fine)):
        net = load(
            text(
                [queue("a"), queue("b"), queue("o", "n"), queue("u", "m")],
                [graph("g", op("n", "nop", ["a"]), op("m", "add", ["n", "b"], loc=(0, 1)))],
                [program("p", ZERO, execute("g", fifo_settings("a"), fifo_settings("b")))],
                arch=arch,
            )
        )
        with be.Emulator(net, threads=1) as emu:
            emu.push("a", entries(fine))
            emu.push("b", entries(0.0))
            emu.run("p")
            assert firsts(emu.peek("o")) == [first]


def test_uninitialised_entries_are_errors_not_zeros(load):
    net = load(
        text(
            [queue("r", kind="ram", entries=2), queue("o", "n")],
            [graph("g", op("n", "nop", ["r"]))],
            [program("p", "var: {$c_zero: 0, $c_one: 1}", execute("g", ram_settings("r", rd="$c_one")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("r", entries(1), slot=0)
        with pytest.raises(be.ProgramError, match="entry 1, which was never written: ram r"):
            emu.run("p")
        emu.push("r", entries(4), slot=1)
        emu.run("p")
        assert firsts(emu.peek("o")) == [4]


def test_a_varinst_moves_the_pointer_of_a_ram_seen_before(load):
    net = load(
        text(
            [queue("a"), queue("r", "n", kind="ram", entries=4)],
            [graph("g", op("n", "nop", ["a"]))],
            [
                program(
                    "p",
                    "var: {$c_zero: 0, $rd: 0, $wr: 2}",
                    "loop: 2",
                    execute("g", fifo_settings("a", "$rd", "$rd"), ram_settings("r", wr="$wr")),
                    "varinst: [$rd, incwrap, 1, 8]",
                    "varinst: [$wr, incwrap, 1, 4]",
                    "endloop",
                )
            ],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1, 2))
        emu.run("p")
        assert firsts(emu.outputs("raw")["r"]) == [0, 0, 1, 2]


def test_settings_of_a_sibling_graph_must_agree(load):
    net = load(
        text(
            [queue("a"), queue("o", "m", device=1), queue("u", "n")],
            [graph("g0", op("n", "nop", ["a"])), graph("g1", op("m", "add", ["n", "a"]), device=1)],
            [
                program(
                    "p",
                    "var: {$c_zero: 0, $z: 0}",
                    execute("g0", fifo_settings("a")),
                    execute("g1", fifo_settings("a", "$z")),
                )
            ],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1))
        with pytest.raises(be.ProgramError, match="settings of queue a differ"):
            emu.run("p")


def test_dynamic_queues_reset_their_pointers_and_must_not_overlap(load):
    net_text = text(
        [queue("a"), queue("d", "n"), queue("o", "m")],
        [graph("g", op("n", "nop", ["a"])), graph("h", op("m", "nop", ["d"]))],
        [
            program(
                "p",
                ZERO,
                "allocate_queue: [d]",
                execute("g", fifo_settings("a")),
                execute("h", fifo_settings("d")),
                "deallocate_queue: [d]",
            ),
            program("twice", "allocate_queue: [d]", "allocate_queue: [d]"),
            program("free", "deallocate_queue: [d]"),
        ],
    )
    net = load(net_text)
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1))
        emu.run("p")
        emu.run("p")
        assert firsts(emu.peek("o")) == [1, 1]
        with pytest.raises(be.ProgramError, match="not allocated"):
            emu.run("free")
        with pytest.raises(be.ProgramError, match="already allocated"):
            emu.run("twice")


@pytest.mark.parametrize(
    ("inputs", "broadcast", "message"),
    [(2_000, 1, "step_limit"), (1, 3_000, "memory limit"), (1, 2_000_000_000, "cannot be held")],
)
def test_work_and_memory_are_bounded(load, inputs, broadcast, message):
    tms = f", input_0_tms: [broadcast: {{z: {broadcast}}}]"
    net = load(
        text(
            [queue("a"), queue("r", "n", kind="ram", t=broadcast)],
            [graph("g", op("n", "nop", ["a"], t=broadcast, more=tms), inputs=inputs)],
            [program("p", ZERO, execute("g", fifo_settings("a", more=", rd_ptr_autoinc: 0"), ram_settings("r")))],
        )
    )
    with be.Emulator(net, threads=1, step_limit=1000, memory_limit=8 << 20) as emu:
        emu.push("a", entries(1))
        with pytest.raises(be.ProgramError, match=message):
            emu.run("p")


def test_what_queues_hold_is_not_there_for_intermediates(load):
    net = load(
        text(
            [queue("a"), queue("big", t=64), queue("o", "m")],
            [graph("g", op("n", "exp", ["a"]), op("m", "exp", ["n"], loc=(0, 1)))],
            [program("p", ZERO, execute("g", fifo_settings("a")))],
        )
    )
    with be.Emulator(net, threads=1, memory_limit=(1 + 64) << 12) as emu:
        emu.push("a", entries(1))
        assert (emu.memory.queues, emu.memory.widest_cut, emu.memory.limit) == (1 << 12, 0, 65 << 12)
        emu.push("big", np.zeros((1, 64, 32, 32), np.float32))
        with pytest.raises(be.ProgramError, match=r"needs 8\.0 KiB .* rams leave 0 B of the memory limit"):
            emu.run("p")
        assert (emu.memory.queues, emu.memory.widest_cut) == (65 << 12, 2 << 12)
    with pytest.raises(be.HostError, match="closed"):
        _ = emu.memory


def test_the_memory_image_of_an_entry_is_what_the_device_holds(load):  # LAYOUT 2, 3; FORMATS 2, 4
    net = load(
        text(
            [queue("a", df="Bfp8_b"), queue("o", "n", df="Bfp8_b")],
            [graph("g", op("n", "nop", ["a"], df="Bfp8_b"))],
            [program("p", ZERO, execute("g", fifo_settings("a")))],
        )
    )
    with be.Emulator(net, threads=1) as emu:
        emu.push("a", entries(1.0))
        (image,) = emu.memory_image("a")
        assert image.size == 1120
        assert image[:4].view("<u4")[0] * 16 == 1120
        assert set(image[16:80].tolist()) == {0x7F}  # one exponent for each row of a face
        assert set(image[80:1104].tolist()) == {0x40}
        with pytest.raises(be.HostError, match="never written"):
            emu.memory_image("o")
        with pytest.raises(be.HostError, match="no queue 'q'"):
            emu.memory_image("q")
