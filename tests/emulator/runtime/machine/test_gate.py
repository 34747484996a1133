"""The gate between a program and the host's threads, on a clock that stands still."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.runtime.machine import gate as module
from buda_emu.emulator.runtime.machine.gate import Gate
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


@pytest.mark.parametrize(("left", "waits"), [(2.0, True), (0.5, True), (1e-3, True), (0.0, False), (-1.0, False)])
def test_a_program_waits_for_the_host_till_its_time_is_over(left, waits, monkeypatch):
    monkeypatch.setattr(module, "monotonic", lambda: 100.0)
    gate = Gate()
    slept = []
    monkeypatch.setattr(gate._changed, "wait", slept.append)
    with gate._lock:
        assert gate.wait_for_host(100.0 + left) is waits
    assert slept == ([pytest.approx(left)] if waits else [])


class Reads:
    """A chunk that reads some slots and writes none."""

    def __init__(self, slices):
        self._slices = slices

    def slices(self, *, written_only):
        return frozenset() if written_only else self._slices


def test_a_slot_that_a_running_chunk_reads_is_not_free_though_it_was_popped(load):
    net = load(
        text(
            [queue("x", entries=2), queue("o", "n", entries=2)],
            [graph("g", op("n", "nop", ["x"]))],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("x")))],
        )
    )
    entry = np.ones((1, 1, 32, 32), np.float32)
    with be.Emulator(net, threads=1) as emu:
        view = emu._memory.channels["x"].view
        emu.push("x", entry)  # its memory is there now
        emu._gate.epoch(Reads(frozenset(view.slices(1))))
        with pytest.raises(be.HostTimeoutError, match="it is full"):
            emu.push("x", entry)
        emu._gate.epoch(None)
        emu.push("x", entry)
        assert emu.peek("x").shape[0] == 2
