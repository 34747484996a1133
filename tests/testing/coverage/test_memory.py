"""What a run is noted to do with queues and rams: all of it, and nothing else."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.testing.coverage.run_features import Noting
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

NOP = op("n", "nop", ["a"])


def noted(tmp_path, queues, *steps, node=NOP, filled="a", pushed=1, inputs=1):
    """The events of one run of an op. The host pushes `pushed` entries into each of `filled`; epochs take `inputs`."""
    path = tmp_path / "net.yaml"
    path.write_text(text(queues, [graph("g", node, inputs=inputs)], [program("p", "var: {$c_zero: 0}", *steps)]))
    with be.Emulator(be.load(path)) as emulator:
        noting = Noting(emulator)
        for name in filled:
            emulator.push(name, np.ones((pushed, 1, 32, 32), np.float32))
        emulator.run("p")
    return noting.events


FIFOS = [queue("a"), queue("o", "n")]
PUSHED = {"queue: push by the host", "queue: push by an op"}


@pytest.mark.parametrize(("inputs", "together"), [(1, set()), (2, {"inputs together"})])
def test_a_queue_that_is_read_from_its_start(inputs, together, tmp_path):
    read = execute("g", fifo_settings("a"))
    assert noted(tmp_path, FIFOS, read, pushed=3, inputs=inputs) == PUSHED | together


def test_a_setting_of_a_pointer_pops(tmp_path):
    steps = [execute("g", fifo_settings("a", slot, slot)) for slot in "01"]
    assert noted(tmp_path, FIFOS, *steps, pushed=3) == PUSHED | {"queue: pop by a pointer setting"}


def test_an_epoch_pops_what_it_has_read(tmp_path):
    read = execute("g", fifo_settings("a", more=", global_rdptr_autoinc: 1"))
    popped = PUSHED | {"queue: pop by global_rdptr_autoinc"}
    assert noted(tmp_path, FIFOS, read, pushed=2) == popped
    assert noted(tmp_path, FIFOS, read) == popped | {"queue: empty again"}


RAMS = {entries: [queue("a", kind="ram", entries=entries), queue("o", "n")] for entries in (1, 3)}
READ = {"ram: write by the host", "queue: push by an op"}


def test_a_slot_that_is_read_again_is_no_wrap(tmp_path):
    read = execute("g", ram_settings("a"))
    assert noted(tmp_path, RAMS[1], read, read) == READ
    assert noted(tmp_path, RAMS[3], read, read) == READ


@pytest.mark.parametrize(
    ("pointers", "wraps"), [((0, 1, 2), False), ((1, 2, 0), True), ((1, 0), False), ((2, 0), True)]
)
def test_a_pointer_wraps_from_the_last_slot_to_the_first(pointers, wraps, tmp_path):
    steps = [execute("g", ram_settings("a", str(slot))) for slot in pointers]
    assert noted(tmp_path, RAMS[3], *steps, pushed=3) == READ | ({"ram: read pointer wraps"} if wraps else set())


@pytest.mark.parametrize(("read", "both"), [(0, {"ram: read and written by one input"}), (1, set())])
def test_an_input_that_writes_a_ram_which_it_reads(read, both, tmp_path):
    """The same slot, or another."""
    queues = [queue("a"), queue("b", "n", kind="ram", entries=3)]
    step = execute("g", fifo_settings("a"), ram_settings("b", str(read)))
    found = noted(tmp_path, queues, step, node=op("n", "add", ["a", "b"]), filled="ab", pushed=2)
    always = {"queue: push by the host", "ram: write by an op", "ram: an entry is written again"}
    assert found == always | both
