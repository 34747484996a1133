"""What a machine shows of itself, in a prompt and in a notebook."""

from xml.etree import ElementTree

import numpy as np
import pytest

import buda_emu as be
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


def netlist(inputs):
    names = [f"x{number}" for number in range(inputs)]
    ops = [op(f"n{number}", "nop", [name], loc=(number // 8, number % 8)) for number, name in enumerate(names)]
    outputs = [queue(f"y{number}", f"n{number}") for number in range(inputs)]
    queues = [*map(queue, names), *outputs, queue("r", kind="ram")]
    settings = map(fifo_settings, names)
    return text(queues, [graph("g", *ops)], [program("p", "var: {$c_zero: 0}", execute("g", *settings))])


def cells(table):
    """The texts of each row."""
    return [[cell.text for cell in row] for row in ElementTree.fromstring(f"<div>{table}</div>").findall(".//tbody/tr")]


@pytest.mark.parametrize("inputs", [1, 40])
def test_a_repr_is_short_and_says_what_is_held(load, inputs):
    emu = be.Emulator(load(netlist(inputs)), precision="ideal")
    assert repr(emu).endswith(f"precision='ideal': {2 * inputs + 1} queues, all empty)")
    for number in range(inputs):
        emu.push(f"x{number}", np.ones((2, 1, 32, 32), np.float32))
    emu.push("r", np.ones((3, 1, 32, 32), np.float32))
    assert "x0 2/4" in repr(emu)
    assert len(repr(emu)) < 300
    table = emu._repr_html_()
    assert table.count("<tr>") == inputs + 2
    assert ["r", "3", "4"] in cells(table)
    emu.run("p")
    assert ["y0", "1", "4"] in cells(emu._repr_html_())
    emu.close()
    assert repr(emu).endswith("closed)")


def test_a_run_says_its_program_and_how_far_it_is(load):
    with be.Emulator(load(netlist(1)), precision="ideal") as emu:
        failed = emu.run_async("p", wait=0)
        failed.exception()
        assert repr(failed) == "<Run of program p: failed, ProgramError>"
        waiting = emu.run_async("p", wait=60)
        assert repr(waiting) in ("<Run of program p: not begun>", "<Run of program p: running, 0 inputs done>")
        waiting.cancel()
        waiting.exception()
        assert repr(waiting) == "<Run of program p: cancelled>"
        emu.push("x0", np.ones((2, 1, 32, 32), np.float32))
        run = emu.run_async("p")
        run.result()
        assert repr(run) == "<Run of program p: done, 1 input>"
