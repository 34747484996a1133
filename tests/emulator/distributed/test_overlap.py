"""Machines do not wait for values that they only store: they take them when the epoch ends, in the order sent."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.runtime.graph import chunk as late_module
from buda_emu.emulator.runtime.graph.chunk import Late
from buda_emu.emulator.runtime.graph.steps import Topology
from buda_emu.support.errors import HostError, HostTimeoutError
from near_parts import on_two_parts, push_all
from shared_files import ROOT

INPUTS = 8
_BACK = """  back:
    target_device: 0
    input_count: 8
    copy: {type: nop, grid_loc: [0, 0], grid_size: [1, 1], inputs: [out],
      t: 1, mblock: [1, 2], ublock: [2, 2], ublock_order: r, buf_size_mb: 2,
      in_df: [Float16_b], out_df: Float16_b, intermed_df: Float16_b, acc_df: Float16_b, math_fidelity: HiFi3}

programs:"""
_KEPT = """  kept: {input: copy, type: queue, entries: 8, grid_size: [1, 1], t: 1, mblock: [1, 2], ublock: [2, 2],
    df: Float16_b, target_device: 0, loc: dram, dram: [[5, 0x10000000]]}

graphs:"""
_EXECUTE = """      - execute: {graph_name: back, queue_settings: {
          out: {prologue: false, epilogue: false, zero: false, rd_ptr_local: $read, rd_ptr_global: $read}}}
      - varinst: [$read, incwrap, 8, 16]"""


def there_and_back(tmp_path, count=INPUTS):
    """Two chips; what the second one computes is read by the first one in the next epoch."""
    text = Path(ROOT / "netlists/two_chips.yaml").read_text()
    for old, new in [
        ("target_device: 1, loc: dram, dram: [[3,", "target_device: 0, loc: dram, dram: [[3,"),
        ("input_count: 2", "input_count: 8"),
        ("entries: 4,", "entries: 8,"),
        ("\ngraphs:", _KEPT),
        ("\nprograms:", "\n" + _BACK),
        ("      - varinst: [$read, incwrap, 2, 8]", _EXECUTE),
    ]:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "back.yaml"
    path.write_text(text.replace("input_count: 8", f"input_count: {count}"))
    return be.load(str(path))


def values():
    """Random ones, for every machine the same."""
    return partial(np.random.default_rng(0).standard_normal, dtype=np.float32)


@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_machine_sends_all_inputs_before_it_takes_what_comes_back(tmp_path, precision):
    netlist = there_and_back(tmp_path)
    parts, machines, _ = on_two_parts(netlist, precision, INPUTS, values)
    assert parts[0].events == ["send"] * INPUTS + ["receive"] * INPUTS
    assert parts[1].events == ["receive", "send"] * INPUTS
    with be.Emulator(netlist, precision, 1) as alone:
        push_all(netlist, alone, INPUTS, values())
        alone.run("run_fwd", {"$p_loop_count": 1})
        assert np.array_equal(alone.pop("kept", INPUTS), machines[0].pop("kept", INPUTS))
    for machine in machines:
        machine.close()


def test_what_is_put_off_stays_below_what_may_wait(tmp_path, monkeypatch):
    netlist = there_and_back(tmp_path)
    entry = 4 * int(np.prod(netlist.queues["out"].blocking.element_shape))
    monkeypatch.setattr(late_module, "LATE_BYTES", 3 * entry)
    parts, machines, _ = on_two_parts(netlist, "format", INPUTS, values)
    assert parts[0].events == ["send"] * 4 + ["receive", "send"] * 4 + ["receive"] * 4
    for machine in machines:
        machine.close()


def test_a_program_that_stops_is_taken_back_on_each_machine(tmp_path):
    """Two inputs of eight are there: both parts say so, and their queues are as before the run."""
    netlist = there_and_back(tmp_path)
    parts, machines, errors = on_two_parts(netlist, "format", 2, values)
    assert all("the host has pushed 2 entries to x" in str(error) for error in errors)
    assert parts[0].events == ["send", "send", "receive", "receive"]
    with pytest.raises(HostTimeoutError, match="wr_ptr_global 0"):
        machines[0].pop("out", 1)
    for machine in machines:
        machine.close()


class Numbers:
    """A part that is given 0, 1, 2 and so on."""

    number = 0

    def __init__(self):
        self._next = 0

    def receive(self, source):
        assert source == 1
        self._next += 1
        return [np.array([self._next - 1])]


@pytest.fixture
def late(tmp_path):
    netlist = there_and_back(tmp_path)
    with be.Emulator(netlist) as emulator:
        yield Late(Numbers(), emulator._memory, Topology(("g",), 1, (), ("x",), frozenset(), {}, ("out", "kept")))


def test_values_are_taken_in_the_order_in_which_they_were_sent(late):
    stored = []
    for _ in range(3):
        late.put_off(1, 10, lambda arrays: stored.append(int(arrays[0][0])))
    assert stored == []
    assert late.receive(1)[0][0] == 3
    assert stored == [0, 1, 2]
    late.put_off(1, 10, lambda arrays: stored.append(int(arrays[0][0])))
    late.take_all()
    assert stored == [0, 1, 2, 4]


def test_a_value_larger_than_what_may_wait_is_taken_at_once(late):
    stored = []
    for size in (10, late_module.LATE_BYTES + 1):
        late.put_off(1, size, lambda arrays: stored.append(int(arrays[0][0])))
    assert stored == [0, 1]


def test_queues_that_the_epoch_reads_are_not_written_late(tmp_path):
    netlist = there_and_back(tmp_path)
    with be.Emulator(netlist) as emulator:
        topology = Topology(("g",), 1, (), ("x",), frozenset({"out"}), {}, ("out", "kept"))
        assert Late(Numbers(), emulator._memory, topology).queues == {"kept"}


def test_what_is_put_off_of_a_lost_machine_is_its_loss(late):
    def lost(_):
        raise HostError("part 1 is lost")

    late._part.receive = lost
    late.put_off(1, 10, lambda _: None)
    with pytest.raises(HostError, match="part 1 is lost"):
        late.take_all()
