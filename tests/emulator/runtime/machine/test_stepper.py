"""Who steps: called in order, one input at a time where it asks, and what it changes counts."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.runtime.machine.gate import Stepper
from buda_emu.netlist.load import check_bytes
from buda_emu.support.errors import HostError
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


@pytest.fixture
def net():
    written = text(
        queue("q_in") + queue("q_out", "last"),
        graph("g", op("first", "exp", ["q_in"]), op("last", "nop", ["first"], loc=(0, 1)), inputs=4),
        program("p", "staticvar: {$c_zero: 0}", execute("g", fifo_settings("q_in"))),
    )
    return check_bytes(written.encode(), "net.yaml", "wormhole_b0").netlist


class Told(Stepper):
    def __init__(self, ops=False, most=None, skipped="", put=None):
        self.ops, self.most_inputs = ops, most
        self.calls = []
        self._skipped, self._put = skipped, put

    def instruction(self, program, index, instruction, variables):  # noqa: ARG002
        self.calls.append(("instruction", index))

    def epoch(self, graphs, inputs):
        self.calls.append(("epoch", graphs, inputs))

    def inputs(self, reads, writes, inputs):  # noqa: ARG002
        self.calls.append(("inputs", dict(reads), dict(writes)))

    def inputs_done(self, inputs):
        self.calls.append(("done", inputs))

    def read(self, queue, tiles, inputs):  # noqa: ARG002
        self.calls.append(("read", queue, tiles.shape))

    def op(self, op, inputs):  # noqa: ARG002
        self.calls.append(("op", op.name))
        return op.name != self._skipped

    def result(self, op, tiles, put, inputs):  # noqa: ARG002
        self.calls.append(("result", op.name, put is not None))
        if put is not None and self._put is not None:
            put(self._put)


def ran(net, stepper, precision="format"):
    with be.Emulator(net, precision, 1) as machine:
        machine.push("q_in", np.zeros((4, 1, 32, 32), np.float32))
        machine.stepper = stepper
        assert machine.stepper is stepper
        machine.run("p")
        return machine.outputs()["q_out"]


def test_without_ops_inputs_run_together(net):
    told = Told()
    assert (ran(net, told) == 1).all()
    assert told.calls == [
        ("instruction", 0),
        ("instruction", 1),
        ("epoch", ("g",), 4),
        ("inputs", {"q_in": [0, 1, 2, 3]}, {"q_out": [0, 1, 2, 3]}),
        ("done", 4),
    ]


@pytest.mark.parametrize(("precision", "own"), [("format", False), ("device", True)])
def test_with_ops_one_input_at_a_time(net, precision, own):
    told = Told(ops=True, most=1)
    assert (ran(net, told, precision) == 1).all()
    assert told.calls[3:10] == [
        ("inputs", {"q_in": [0]}, {"q_out": [0]}),
        ("read", "q_in", (1, 1, 1024)),
        ("op", "first"),
        ("result", "first", True),
        ("op", "last"),
        ("result", "last", own),
        ("done", 1),
    ]
    assert [call for call in told.calls if call[0] == "inputs"][3] == ("inputs", {"q_in": [3]}, {"q_out": [3]})


@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
def test_a_skipped_op_gives_zero_and_put_replaces(net, precision):
    assert (ran(net, Told(ops=True, most=1, skipped="first"), precision) == 0).all()
    assert (ran(net, Told(ops=True, skipped="first"), precision) == 0).all()
    five = np.full((1, 1, 1024), 5, np.float32)
    assert (ran(net, Told(ops=True, most=2, put=five), precision) == 5).all()


def test_an_op_that_takes_no_work_cannot_be_skipped(net):
    with pytest.raises(HostError, match="it takes no work to skip"):
        ran(net, Told(ops=True, skipped="last"))
