"""Which format label a tensor carries where it shows: Wormhole truncates an operand labelled Float32 to Tf32, and no
other (OPS 3.1 and its corrections in 12)."""

import numpy as np
import pytest

import buda_emu as be
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

TINY = 2.0**-20  # 1 + TINY is a float32, and 1 in Tf32
ZERO = "var: {$c_zero: 0}"


def entries(*values, t=1):
    return np.stack([np.full((t, 32, 32), value, np.float32) for value in values])


def firsts(array):
    return array[:, 0, 0, 0].tolist()


def test_a_tilizer_passes_on_the_label_that_its_operand_has_got(load):
    net = load(
        text(
            [queue("a", more=", layout: flat"), queue("o", "n"), queue("b"), queue("p", "m")],
            [
                graph("g", op("t", "tilizer", ["a"]), op("n", "nop", ["t"], loc=(0, 1))),
                graph("h", op("m", "nop", ["b"], loc=(0, 2))),
            ],
            [program("r", ZERO, execute("g", fifo_settings("a")), execute("h", fifo_settings("b")))],
        )
    )
    with be.Emulator(net, "format", threads=1) as emu:
        emu.push("a", entries(1 + TINY))
        emu.push("b", entries(1 + TINY))
        emu.run("r")
        assert firsts(emu.peek("o")) == [1 + TINY]
        assert firsts(emu.peek("p")) == [1]


def dual_view():
    """base holds sums of a and b, labelled Tf32; view reads two of its entries as one."""
    base, view = queue("base", "s", kind="ram", entries=2), queue("view", kind="ram", entries=1, t=2)
    place = base[base.index("dram:") :]
    view = view[: view.index("dram:")] + place.replace("}", ", alias: base}")
    return text(
        [queue("a"), queue("b"), base, view, queue("o", "n", t=2), queue("p", "m")],
        [
            graph("g", op("s", "add", ["a", "b"]), inputs=2),
            graph("h", op("n", "nop", ["view"], t=2)),
            graph("i", op("m", "nop", ["base"])),
        ],
        [
            program(
                "fill",
                ZERO,
                execute(
                    "g", fifo_settings("a"), fifo_settings("b"), ram_settings("base", more=", global_wrptr_autoinc: 1")
                ),
            ),
            program("read", ZERO, execute("h", ram_settings("view"))),
            program("under", ZERO, execute("i", ram_settings("base"))),
        ],
    )


@pytest.mark.parametrize("restored", [False, True])
def test_a_view_keeps_the_label_of_what_was_pushed_through_it(load, tmp_path, restored):
    net = load(dual_view())
    with be.Emulator(net, "format", threads=1) as first:
        first.push("view", entries(0, t=2))  # a Float32
        first.push("a", entries(1, 1))
        first.push("b", entries(TINY, TINY))
        first.run("fill")
        first.save(tmp_path / "snap")
        emu = be.Emulator.load(tmp_path / "snap", threads=1) if restored else first
        emu.run("read")
        assert firsts(emu.peek("o")) == [1]  # truncated
        emu.run("under")
        assert firsts(emu.peek("p")) == [1 + TINY]  # the base's own label: not truncated
        emu.close()


def test_a_view_that_nobody_pushed_to_has_the_label_of_what_lies_there(load):
    with be.Emulator(load(dual_view()), "format", threads=1) as emu:
        emu.push("a", entries(1, 1))
        emu.push("b", entries(TINY, TINY))
        emu.run("fill")
        emu.run("read")
        assert firsts(emu.peek("o")) == [1 + TINY]


def feedback(*settings, writes=2):
    """m[i + 1] = m[i] + a[i] in one execute."""
    return text(
        [queue("a"), queue("m", "s", kind="ram", entries=writes), queue("o", "s")],
        [graph("g", op("s", "add", ["a", "m"]), inputs=4)],
        [program("p", ZERO, *settings)],
    )


@pytest.mark.parametrize("inputs_at_once", [None, 1])
@pytest.mark.parametrize("prologue", [False, True])
def test_each_input_sees_the_label_of_what_the_one_before_it_wrote(load, prologue, inputs_at_once):
    flags = ram_settings("m", prologue=str(prologue).lower())
    net = load(feedback(execute("g", fifo_settings("a"), flags), writes=1))
    with be.Emulator(net, "format", threads=1, inputs_at_once=inputs_at_once) as emu:
        emu.push("a", entries(TINY, TINY, TINY, TINY))
        emu.push("m", entries(1 + TINY))  # Float32: truncated; what the graph writes is a Tf32
        emu.run("p")
        assert firsts(emu.peek("o")) == [1 + TINY, 1 + 2 * TINY, 1 + 3 * TINY, 1 + 4 * TINY]


def moving(rd, wr):
    settings = ram_settings("m", rd, wr, more=", global_rdptr_autoinc: 1, global_wrptr_autoinc: 1")
    return feedback("var: {$one: 1, $two: 2}", execute("g", fifo_settings("a"), settings), writes=6)


def test_a_slot_that_an_earlier_input_writes_may_be_read(load):
    with be.Emulator(load(moving("$c_zero", "$one")), "format", threads=1) as emu:
        emu.push("a", entries(1, 2, 3, 4))
        emu.push("m", entries(10))
        emu.run("p")
        assert firsts(emu.peek("o")) == [11, 13, 16, 20]


def test_a_slot_that_nobody_wrote_is_an_error(load):
    with be.Emulator(load(moving("$c_zero", "$two")), "format", threads=1) as emu:
        emu.push("a", entries(1, 2, 3, 4))
        emu.push("m", entries(10))
        with pytest.raises(be.ProgramError, match="read of entry 1, which was never written: ram m") as caught:
            emu.run("p")
        assert caught.value.input == (2, 4)
