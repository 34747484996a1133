"""The state of a machine in memory, in the middle of a program, and back to it."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.runtime.machine.gate import Stepper
from buda_emu.emulator.runtime.snapshots.checkpoint import changing_stores
from buda_emu.netlist.load import check_bytes
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


@pytest.fixture
def net():
    written = text(
        queue("q_in", entries=6) + queue("q_out", "last", entries=6),
        graph("g", op("last", "exp", ["q_in"]), inputs=2),
        program(
            "p",
            "staticvar: {$c_zero: 0, $rd: 0}",
            "loop: 3",
            execute("g", fifo_settings("q_in", "$rd", "$rd")),
            "varinst: [$rd, incwrap, 2, 12]",
            "endloop",
        ),
    )
    return check_bytes(written.encode(), "net.yaml", "wormhole_b0").netlist


class EndsError(Exception):
    pass


class TakesAt(Stepper):
    """Takes a checkpoint at the n-th instruction, and ends the program at another."""

    def __init__(self, points, take, end):
        self._points, self._take, self._end = points, take, end
        self.count, self.taken = 0, None

    def instruction(self, *_):
        self.count += 1
        if self.count == self._take:
            self.taken = self._points.take(None, running=True)
        if self.count == self._end:
            raise EndsError


def pushed(net, precision):
    machine = be.Emulator(net, precision, 1)
    rng = np.random.default_rng(0)
    machine.push("q_in", rng.normal(size=(6, 1, 32, 32)).astype(np.float32))
    return machine


@pytest.mark.parametrize("precision", ["format", "device"])
@pytest.mark.parametrize("take", range(1, 11))
def test_a_program_goes_on_from_any_instruction(net, precision, take):
    with pushed(net, precision) as plain:
        plain.run("p")
        expected = plain.outputs()["q_out"]
        assert len(expected) == 6
    with pushed(net, precision) as machine:
        points = machine.checkpoints()
        machine.stepper = stepper = TakesAt(points, take, 10)
        with pytest.raises(EndsError):
            machine.run("p")
        machine.stepper = None
        for _ in range(2):  # as often as one likes
            points.back_to(stepper.taken)
            assert stepper.taken.standing.counter == [0, 1, 2, 3, 4, 2, 3, 4, 2, 3][take - 1]
            machine.resume(stepper.taken.standing)
            np.testing.assert_array_equal(machine.outputs()["q_out"], expected)


def test_between_programs(net):
    with pushed(net, "format") as machine:
        points = machine.checkpoints()
        start = points.take(None, running=False)
        assert start.standing is None
        machine.run("p")
        first = machine.outputs()["q_out"]
        points.back_to(start)
        assert machine.outputs() == {}
        machine.run("p")
        np.testing.assert_array_equal(machine.outputs()["q_out"], first)


def test_only_what_programs_change_is_copied_and_what_did_not_is_shared(net):
    with pushed(net, "format") as machine:
        points = machine.checkpoints()
        assert changing_stores(net, machine.machine.memory) == {"q_out"}
        machine.run("p")
        one = points.take(None, running=False)
        two = points.take(one, running=False)
        pieces = list(one.pieces())
        assert sum(piece.nbytes for piece in pieces) == 6 * 4096
        assert all(a is b for a, b in zip(pieces, two.pieces(), strict=True))


def test_an_entry_is_put_whoever_fills_it(net):
    with pushed(net, "format") as machine:
        machine.run("p")
        machine.put("q_out", np.full((32, 32), 7.0, np.float32), 3)
        assert (machine.outputs()["q_out"][3] == 7).all()
        with pytest.raises(be.HostError, match=r"slots 0\.\.5"):
            machine.put("q_out", np.ones((32, 32)), 6)
        with pytest.raises(be.HostError, match="one entry"):
            machine.put("q_out", np.ones((2, 1, 32, 32)), 1)
