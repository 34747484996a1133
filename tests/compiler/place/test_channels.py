"""DRAM channels of an epoch of a single input, by when what they move is due."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.compiler.place.channels import (
    ChannelLoad,
    Due,
    PhaseUse,
    QueueUses,
    Transfer,
    balance_channels,
    channels_in_time,
)

NONE = (ChannelLoad(),) * 3


def filled(items, used=NONE):
    """Cycles of each channel, and those until each item is there."""
    chosen = channels_in_time(tuple(items), used)
    cycles = [channel.cycles for channel in used]
    for item, channels in zip(items, chosen, strict=True):
        for channel in channels:
            cycles[channel] += item.cycles
    return cycles, [max(cycles[channel] for channel in channels) for channels in chosen]


def test_what_is_due_first_lies_in_a_channel_of_its_own():
    first, second, third = items = [
        Transfer(Due(0.0), 10.0, 1),
        Transfer(Due(60.0), 10.0, 6),
        Transfer(Due(90.0), 10.0, 8),
    ]
    _, there = filled(items)
    assert there == [10.0, 70.0, 70.0]  # nothing is later than the first
    assert all(done <= item.due.cycle + 10.0 for done, item in zip(there, items, strict=True))
    assert [len(item) for item in channels_in_time((third, first, second), NONE)] == [8, 1, 6]


def test_what_is_due_together_is_shared_out_evenly():
    assert filled([Transfer(Due(5.0), 10.0, 9), Transfer(Due(5.0), 5.0, 6)])[0] == [40.0] * 3


def test_beside_what_is_due_early_nothing_late_is_put():
    early = ChannelLoad().with_buffer(Due(0.0), 5.0)
    cycles, _ = filled([Transfer(Due(100.0), 10.0, 6)], (ChannelLoad(), early, ChannelLoad()))
    assert cycles == [30.0, 5.0, 30.0]


def test_what_is_written_in_parts_may_take_longer():
    written = Due(2.0, parts=10, since=18.0)
    cycles, _ = filled([Transfer(written, 10.0, 2), Transfer(Due(0.0), 1.0, 1)], NONE[:2])
    assert cycles == [1.0, 20.0] or cycles == [20.0, 1.0]


@pytest.mark.parametrize("cycles", [1.0, 15.0, 40.0, 200.0])
@pytest.mark.parametrize("due", [Due(5.0), Due(2.0, parts=4, since=30.0), Due(2.0, parts=4)])
def test_a_channel_takes_as_long_as_its_limit_where_nothing_is_later(due, cycles):
    assert due.limit(due.late(cycles)) == pytest.approx(cycles)


def test_parts_that_are_made_at_once_wait_for_the_whole_channel():
    assert Due(0.0, parts=8).late(80.0) == 80.0
    assert Due(0.0, parts=8, since=70.0).late(80.0) == 10.0  # the last one is as late as any


SOON, LATER, END = Due(0.0), Due(500.0), Due(0.0, written=True)


def test_what_one_epoch_writes_and_the_next_reads_at_once_lies_beside_nothing_slow_in_either():
    handed = QueueUses((PhaseUse(0, 100.0, END), PhaseUse(1, 100.0, SOON)), (0,))
    written = QueueUses((PhaseUse(0, 400.0, END),), (1,))
    cache = QueueUses((PhaseUse(1, 400.0, LATER),), (0,))
    (at,), (end,), (slow,) = balance_channels((handed, written, cache), 3)
    assert at not in (end, slow)


def test_buffers_are_exchanged_where_no_single_one_may_move():
    queues = tuple(QueueUses((PhaseUse(0, cycles, SOON),), (at,)) for at, cycles in enumerate((300.0, 300.0)))
    queues += tuple(QueueUses((PhaseUse(0, 100.0, SOON),), (at,)) for at in (0, 0))
    places = balance_channels((*queues, QueueUses((PhaseUse(0, 250.0, SOON),), (1,))), 2)
    cycles = [0.0, 0.0]
    for queue, own in zip((*queues, QueueUses((PhaseUse(0, 250.0, SOON),), (1,))), places, strict=True):
        cycles[own[0]] += queue.uses[0].cycles
    assert max(cycles) == 550.0


def test_what_is_fixed_stays():
    both = QueueUses((PhaseUse(0, 300.0, SOON),), (0,), fixed=True), QueueUses((PhaseUse(0, 300.0, SOON),), (0,))
    assert balance_channels(both, 2) == ((0,), (1,))
    assert balance_channels((both[0], both[0]), 2) == ((0,), (0,))


def waits(queues, places, channels):
    """Of all phases: the latest of what is read, and of what is written."""
    total = 0.0
    for phase in {use.phase for queue in queues for use in queue.uses}:
        used = [(use, own) for queue, own in zip(queues, places, strict=True) for use in queue.uses]
        used = [(use, own) for use, own in used if use.phase == phase]
        cycles = [sum(use.cycles * own.count(channel) for use, own in used) for channel in range(channels)]
        for written in (False, True):
            late = [use.due.late(cycles[at]) for use, own in used for at in own if use.due.written == written]
            total += max([0.0, *late])
    return total


DUES = st.builds(
    Due,
    st.floats(0.0, 2_000.0),
    st.integers(1, 8),
    st.floats(0.0, 500.0),
    st.booleans(),
)
USES = st.dictionaries(st.integers(0, 2), st.tuples(st.floats(1.0, 900.0), DUES), min_size=1)


@given(st.lists(st.tuples(USES, st.lists(st.integers(0, 2), min_size=1, max_size=3), st.booleans()), max_size=8))
@settings(max_examples=60, deadline=None)
def test_all_phases_together_never_wait_longer_than_before(found):
    queues = tuple(
        QueueUses(tuple(PhaseUse(phase, *use) for phase, use in uses.items()), tuple(at), fixed)
        for uses, at, fixed in found
    )
    places = balance_channels(queues, 3)
    assert [len(own) for own in places] == [len(queue.channels) for queue in queues]
    assert all(own == queue.channels for own, queue in zip(places, queues, strict=True) if queue.fixed)
    assert waits(queues, places, 3) <= waits(queues, [queue.channels for queue in queues], 3) + 1e-6


def test_what_no_channel_has_in_time_has_one_all_the_same():
    late = ChannelLoad(1000.0, frozenset([Due(-1000.0)]))
    assert filled([Transfer(Due(-50.0), 10.0, 4)], (late, late))[0] == [1020.0] * 2
