"""Queues and rams as an epoch moves them, and moves them back; tile memory that is taken over from a snapshot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.memory.store import EntryView, MemoryBudget, TileStore
from buda_emu.emulator.runtime.machine.memory import Region, RegionTable
from buda_emu.spec.ring import RingPointers
from buda_emu.support.errors import HostError

ENTRIES = 5


def store(slices=ENTRIES, limit=1 << 20):
    return TileStore("s", slices, 1, MemoryBudget(limit))


def fifo(rd=0, wr=0, local=0, step=1, *, prologue=False):
    ring = RingPointers(ENTRIES, rd, wr, local)
    return Fifo(EntryView("q", store(), ENTRIES, 1), ring, rd_ptr_autoinc=step, prologue=prologue)


pointers = st.integers(0, 2 * ENTRIES - 1)


@given(rd=pointers, local=pointers, held=st.integers(0, ENTRIES), step=st.integers(-3, 7), flag=st.booleans(),
       inputs=st.integers(0, 12))  # fmt: skip
def test_what_an_epoch_moved_is_moved_back(rd, local, held, step, flag, inputs):
    queue = fifo(rd, (rd + held) % (2 * ENTRIES), local, step, prologue=flag)
    before = queue.describe()
    reads = inputs if held else 0
    for _ in range(reads):
        queue.next_read()
    writes = min(inputs, ENTRIES - held)
    for _ in range(writes):
        queue.next_write()
    popped = min(inputs, queue.ring.occupancy)
    queue.pop(popped)
    queue.undo_pops(popped)
    queue.undo_writes(writes)
    queue.undo_reads(reads)
    assert queue.describe() == before


@given(rd=st.integers(0, 3), wr=st.integers(0, 3), steps=st.tuples(st.integers(0, 9), st.integers(0, 9)),
       flag=st.booleans(), inputs=st.integers(0, 9))  # fmt: skip
def test_a_rams_pointers_are_moved_back(rd, wr, steps, flag, inputs):
    ram = Ram(
        EntryView("r", store(4), 4, 1),
        rd,
        wr,
        prologue=flag,
        global_rdptr_autoinc=steps[0],
        global_wrptr_autoinc=steps[1],
    )
    for _ in range(inputs):
        ram.next_read()
        ram.next_write()
    ram.undo_reads(inputs)
    ram.undo_writes(inputs)
    assert (ram.rd, ram.wr) == (rd, wr)


@given(rd=pointers, ahead=st.integers(0, 2 * ENTRIES - 1), held=st.integers(0, ENTRIES))
def test_a_streamed_read_is_there_exactly_when_it_was_pushed(rd, ahead, held):
    """An epoch reads at most `entries` ahead of the global pointer."""
    limit = 2 * ENTRIES
    queue = fifo(rd, (rd + held) % limit, (rd + ahead) % limit)
    if ahead < ENTRIES:
        assert queue.holds_next_read() == (ahead < held)
    elif ahead == ENTRIES and held == 0:
        assert not queue.holds_next_read()


def test_an_empty_queue_holds_nothing():
    assert not fifo().holds_next_read()
    assert fifo(wr=1).holds_next_read()


def test_dual_views_share_their_slices():
    shared = store(4)
    base, view = EntryView("base", shared, 4, 1), EntryView("view", shared, 2, 2)
    assert base.slices(2) | base.slices(3) == view.slices(1)
    assert base.slices(1).isdisjoint(view.slices(1))
    assert base.slices(0).isdisjoint(EntryView("other", store(), 4, 1).slices(0))


def test_a_store_takes_over_other_contents():
    budget = MemoryBudget(5 * 4096)
    tiles = TileStore("s", 8, 1, budget)
    tiles.data(3)
    assert budget.used == tiles.bytes_used == 3 * 4096
    tiles.replace((np.full((4, 1, 1024), 7, np.float32),), ["", "Float32", "", "Bfp8"])
    assert budget.used == 4 * 4096
    assert [tiles.label(slot, 1) for slot in range(5)] == ["", "Float32", "", "Bfp8", ""]
    assert (tiles.data(5)[3] == 7).all()
    with pytest.raises(HostError, match="memory of s needs"):
        tiles.data(6)
    tiles.replace(tiles.fresh(0), [])
    assert (budget.used, tiles.labels) == (0, [])


def test_a_view_knows_its_memory_again(monkeypatch):
    monkeypatch.setattr("buda_emu.emulator.memory.store.TileStore._room_attempts", lambda *given: (given[2],))
    view = EntryView("q", store(8), 4, 2)
    block = view.block(1, 2)
    assert view.holds(1, block)
    view.reserve(4)  # more than there was room for
    assert not view.holds(1, block)


def test_regions_are_given_back_all_at_once():
    table = RegionTable()
    table.take("a", [Region(0, "dram", 0, 0, 8)])
    table.take("b", [Region(0, "dram", 1, 0, 8)])
    assert table.owners == ["a", "b"]
    table.clear()
    assert table.conflict([Region(0, "dram", 0, 0, 8)]) is None


def test_a_pointer_pair_beyond_what_was_written_names_an_entry_that_was_pushed():  # NETLIST 4.1
    """The local pointer is behind the write pointer, though its slot is not between read and write pointer."""
    queue = fifo(wr=1, local=ENTRIES + 1)
    assert (queue.ring.local - queue.ring.rd) % ENTRIES >= queue.ring.occupancy
    assert queue.holds_next_read()


def test_pointers_of_a_new_queue():  # NETLIST 4.1: one entry for each input, and the global pointer stays
    queue = Fifo(EntryView("q", store(), ENTRIES, 1), RingPointers(ENTRIES))
    assert (queue.rd_ptr_autoinc, queue.global_rdptr_autoinc) == (1, 0)
    assert (queue.ring.rd, queue.ring.wr, queue.ring.local, queue.ring.local_base) == (0, 0, 0, 0)
