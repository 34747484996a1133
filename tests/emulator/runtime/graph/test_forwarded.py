"""A queue that one graph feeds and reads: its own TMs come before those of the op that reads it (NETLIST 4.7)."""

import numpy as np
import pytest

import buda_emu as be
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

SHAPED = {"t": 1, "mblock": (1, 2)}
CUT = {"t": 2, "mblock": (1, 1)}


def netlist(tms, through, more=""):
    """`n` to `m`, through a queue with TMs, or directly with the same ones at `m`. More is at `m` before the rest."""
    own = f", input_tms: [{tms}]" if through else ""
    queues = [
        queue("x", entries=4, df="Float16_b", **SHAPED),
        queue("q", "n", df="Float16_b", **CUT, more=own),
        queue("o", "m", df="Float16_b", **SHAPED),
    ]
    second = f", input_0_tms: [{'' if through else f'{tms}, '}{more}]"
    ops = (
        op("n", "exp", ["x"], **SHAPED, df="Float16_b"),
        op("m", "nop", ["q" if through else "n"], loc=(1, 0), **SHAPED, df="Float16_b", more=second),
    )
    settings = [fifo_settings(name) for name in (("x", "q") if through else ("x",))]
    kept = queues if through else [queues[0], queues[2]]
    return text(
        kept,
        [graph("g", *ops, inputs=2)],
        [program("p", "var: {$c_zero: 0}", execute("g", *settings))],
    )


@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
@pytest.mark.parametrize("at_once", [None, 1])
def test_it_is_as_if_the_op_had_those_tms(load, precision, at_once):
    given = np.random.default_rng(3).normal(size=(2, 1, 32, 64)).astype(np.float32)
    found = []
    for through in (True, False):
        with be.Emulator(
            load(netlist("hslice: 2", through, "hstack: 2, hslice: 2, hstack: 2")), precision, inputs_at_once=at_once
        ) as machine:
            machine.push("x", given)
            machine.run("p")
            found.append(machine.pop("o", 2))
    assert np.array_equal(*found)
    assert not np.array_equal(found[0], given)


def test_what_the_host_reads_is_what_was_pushed(load):
    given = np.random.default_rng(3).normal(size=(2, 1, 32, 64)).astype(np.float32)
    with be.Emulator(load(netlist("hslice: 2", True, "hstack: 2")), "ideal") as machine:
        machine.push("x", given)
        machine.run("p")
        pushed, read = machine.pop("q", 2), machine.pop("o", 2)
    assert np.array_equal(pushed[:, 0], read[:, 0, :, :32])
    assert np.array_equal(pushed[:, 1], read[:, 0, :, 32:])
