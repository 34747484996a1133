"""DRAM channels of an epoch of a single input, by when what they move is due."""

from buda_emu.compiler.place.channels import Moved, Shared, channels_in_time
from buda_emu.compiler.place.due import Due

NONE = (Shared(),) * 3


def filled(items, used=NONE):
    """Cycles of each channel, and those until each item is there."""
    chosen = channels_in_time(tuple(items), used)
    cycles = [channel.cycles for channel in used]
    for item, channels in zip(items, chosen, strict=True):
        for channel in channels:
            cycles[channel] += item.cycles
    return cycles, [max(cycles[channel] for channel in channels) for channels in chosen]


def test_what_is_due_first_lies_in_a_channel_of_its_own():
    first, second, third = items = [Moved(Due(0.0), 10.0, 1), Moved(Due(60.0), 10.0, 6), Moved(Due(90.0), 10.0, 8)]
    _, there = filled(items)
    assert there == [10.0, 70.0, 70.0]  # nothing is later than the first
    assert all(done <= item.due.cycle + 10.0 for done, item in zip(there, items, strict=True))
    assert [len(item) for item in channels_in_time((third, first, second), NONE)] == [8, 1, 6]


def test_what_is_due_together_is_shared_out_evenly():
    assert filled([Moved(Due(5.0), 10.0, 9), Moved(Due(5.0), 5.0, 6)])[0] == [40.0] * 3


def test_beside_what_is_due_early_nothing_late_is_put():
    early = Shared().also(Due(0.0), 5.0)
    cycles, _ = filled([Moved(Due(100.0), 10.0, 6)], (Shared(), early, Shared()))
    assert cycles == [30.0, 5.0, 30.0]


def test_what_is_written_in_parts_may_take_longer():
    cycles, _ = filled([Moved(Due(2.0, parts=10), 10.0, 2), Moved(Due(0.0), 1.0, 1)], NONE[:2])
    assert cycles == [1.0, 20.0] or cycles == [20.0, 1.0]


def test_what_no_channel_has_in_time_has_one_all_the_same():
    late = Shared(1000.0, frozenset([Due(-1000.0)]))
    assert filled([Moved(Due(-50.0), 10.0, 4)], (late, late))[0] == [1020.0] * 2
