import numpy as np
import pytest

from buda_emu.emulator.memory.channel import Fifo, Ram
from buda_emu.emulator.memory.store import EntryView, MemoryBudget, TileStore
from buda_emu.emulator.runtime.machine.memory import Region, RegionTable
from buda_emu.spec.ring import RingPointers
from buda_emu.support.errors import HostError, ProgramError

TILE_BYTES = 4096


def make_view(entries=4, t=1, tiles=1, limit=1 << 30):
    return EntryView("q", TileStore("q", entries * t, tiles, MemoryBudget(limit)), entries, t)


def tiles_of(*values, tiles=1):
    return np.stack([np.full((tiles, 1024), value, np.float32) for value in values])


def test_entries_never_written_have_no_label():
    view = make_view()
    assert view.label(2) == ""
    view.write([2], tiles_of(5.0), "Bfp8_b")
    assert view.label(2) == "Bfp8_b"
    assert view.label(1) == ""


def test_consecutive_entries_are_read_without_a_copy_and_others_in_order():
    view = make_view()
    view.write([0, 1, 2], tiles_of(0, 1, 2), "Float32")
    assert np.shares_memory(view.read([1, 2]), view.entry(1))
    assert view.read([2, 0])[:, 0, 0].tolist() == [2, 0]


def test_memory_grows_with_use_not_with_entries():
    budget = MemoryBudget(1 << 20)
    store = TileStore("big", 1_000_000, 1, budget)
    EntryView("big", store, 1_000_000, 1).write([3], tiles_of(1.0), "Float32")
    assert budget.used == 4 * TILE_BYTES


def test_a_budget_overrun_names_the_queue_and_writes_nothing():
    view = make_view(entries=8, limit=2 * TILE_BYTES)
    view.write([0], tiles_of(1.0), "Float32")
    with pytest.raises(HostError, match="memory of q needs"):
        view.write([5], tiles_of(1.0), "Float32")
    assert view.entry(0)[0, 0] == 1.0


def test_a_dual_view_sees_the_slices_of_the_base():  # NETLIST 4.5
    store = TileStore("base", 4, 1, MemoryBudget(1 << 20))
    base, view = EntryView("base", store, 4, 1), EntryView("view", store, 2, 2)
    base.write([2, 3], tiles_of(2, 3), "Float16_b")
    assert view.label(0) == ""
    assert view.entry(1)[:, 0].tolist() == [2, 3]
    view.write([0], tiles_of(7, tiles=2), "Float16_b")
    assert base.entry(1)[0, 0] == 7


def test_zero_touches_written_entries_only():
    view = make_view()
    view.write([1], tiles_of(3.0), "Float32")
    view.store.zero_entries(view)
    assert view.entry(1).max() == 0
    assert view.label(0) == ""


def test_a_full_queue_refuses_a_push():  # deviation NETLIST 9.1
    fifo = Fifo(make_view(entries=2), RingPointers(2))
    assert [fifo.next_write(), fifo.next_write()] == [0, 1]
    with pytest.raises(ProgramError, match="full queue"):
        fifo.next_write()


def test_prologue_reads_stay_and_others_move():
    fifo = Fifo(make_view(entries=3), RingPointers(3, wr=3))
    assert [fifo.next_read() for _ in range(2)] == [0, 1]
    fifo.prologue = True
    assert [fifo.next_read() for _ in range(2)] == [2, 2]


def test_reading_an_empty_queue_names_its_pointers():
    fifo = Fifo(make_view(), RingPointers(4, rd=1, wr=1))
    with pytest.raises(ProgramError, match=r"rd_ptr_global 1, wr_ptr_global 1"):
        fifo.next_read()


def test_ram_pointers_move_by_their_autoinc_and_wrap():
    ram = Ram(make_view(entries=3), global_wrptr_autoinc=2, global_rdptr_autoinc=1)
    assert [ram.next_write() for _ in range(3)] == [0, 2, 1]
    assert [ram.next_read() for _ in range(4)] == [0, 1, 2, 0]
    with pytest.raises(ProgramError, match="rd_ptr_global 3 outside"):
        ram.place_read(3)


def test_regions_conflict_on_the_same_channel_only():
    table = RegionTable()
    table.take("a", [Region(0, "dram", 1, 100, 50)])
    assert table.conflict([Region(0, "dram", 2, 100, 50)]) is None
    assert table.conflict([Region(0, "dram", 1, 150, 50)]) is None
    found = table.conflict([Region(0, "dram", 1, 149, 1)])
    assert found is not None
    assert found[0] == "a"
    table.release("a")
    assert not table.holds("a")


def test_memory_of_a_single_entry_is_exchanged():
    one, several = make_view(1, t=2, tiles=3), make_view(2, t=2, tiles=3)
    values = np.arange(6 * 1024, dtype=np.float32).reshape(1, 6, 1024)
    assert several.exchange(values) is None
    one.write([0], np.ones_like(values), "Float32")
    before = one.entry(0)
    old = one.exchange(values)
    assert np.shares_memory(old, before)
    assert np.shares_memory(one.entry(0), values)
    assert np.array_equal(one.entry(0), values[0])
    assert one.label(0) == "Float32"
    assert one.store.bytes_used == values.nbytes


def test_regions_meet_from_either_side():
    low, high = Region(0, "dram", 0, 0, 10), Region(0, "dram", 0, 5, 10)
    assert low.overlaps(high)
    assert high.overlaps(low)
    assert not low.overlaps(Region(0, "dram", 0, 10, 10))
    assert not Region(0, "dram", 0, 10, 10).overlaps(low)


def test_memory_that_is_not_to_be_had_is_not_counted(monkeypatch):
    budget = MemoryBudget(1 << 20)
    store = TileStore("q", 8, 1, budget)
    view = EntryView("q", store, 8, 1)
    view.write([0], tiles_of(1.0), "Float32")
    used = budget.used

    def none(*_):
        raise MemoryError

    monkeypatch.setattr(TileStore, "_grow", none)
    monkeypatch.setattr(TileStore, "_capacity", lambda _: 1)
    with pytest.raises(HostError, match="are not to be had"):
        view.write([3], tiles_of(1.0), "Float32")
    assert budget.used == used


def lending(entries=2, t=2, limit=1 << 30):
    """A view of six lent slices, of which three entries are held, and what was asked of their source."""
    view, asked = make_view(entries + 1, t, limit=limit), []

    def source(first, last):
        asked.append((first, last))
        return tiles_of(*range(first, last))

    assert view.store.lend(source, (entries + 1) * t, "Bfp8_b")
    return view, asked


def test_what_is_lent_takes_no_memory_and_is_read_each_time():
    view, asked = lending(limit=0)
    assert [view.label(slot) for slot in range(3)] == ["Bfp8_b"] * 3
    assert view.written == 3
    for _ in range(2):
        assert view.read([1, 2])[:, :, 0].tolist() == [[2, 3], [4, 5]]
    assert view.read([2, 0])[:, :, 0].tolist() == [[4, 5], [0, 1]]
    assert view.entry(1)[:, 0].tolist() == [2, 3]
    assert asked == [(2, 6), (2, 6), (4, 6), (0, 2), (2, 4)]
    assert view.store.bytes_used == 0


def test_who_writes_to_what_is_lent_has_it_in_memory_first():
    view, _ = lending()
    view.write([1], tiles_of(7, 8).reshape(1, 2, 1024), "Float32")
    assert view.store.source is None
    assert view.read([0, 1, 2])[:, :, 0].tolist() == [[0, 1], [7, 8], [4, 5]]
    assert [view.label(slot) for slot in range(3)] == ["Bfp8_b", "Float32", "Bfp8_b"]
    assert view.store.bytes_used == 6 * TILE_BYTES


def test_what_is_lent_stays_so_where_there_is_no_memory():
    view, _ = lending(limit=5 * TILE_BYTES)
    with pytest.raises(HostError, match="memory of q needs"):
        view.write([1], tiles_of(7, 8).reshape(1, 2, 1024), "Float32")
    assert view.read([1])[0, :, 0].tolist() == [2, 3]


def test_memory_that_holds_something_lends_nothing():
    view = make_view()
    view.write([0], tiles_of(1.0), "Float32")
    assert not view.store.lend(lambda first, last: tiles_of(*range(first, last)), 4, "Float32")


def test_what_is_lent_goes_to_who_takes_all_of_it():
    view, _ = lending()
    (array,) = view.store.arrays()
    assert array[:6, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    view, _ = lending()
    view.store.free()
    assert view.store.source is None
    assert view.label(0) == ""
