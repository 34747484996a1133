"""What memory holds over time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.performance.timeline import Access, Live, Schedule, live_ranges, occupancy

LIVE = st.builds(
    Live, st.sampled_from(["L1", "L2"]), st.integers(0, 100), st.integers(1, 50), st.integers(0, 20), st.integers(0, 20)
)


@given(st.lists(LIVE))
def test_occupancy_is_the_sum_of_what_lives(lives):
    found = occupancy(lives)
    assert set(found) == {live.space for live in lives}
    for space, own in found.items():
        steps = dict(zip(own.times.tolist(), own.bytes.tolist(), strict=True))
        held = 0
        for time in range(22):
            held = steps.get(time, held)
            there = [live for live in lives if live.space == space and live.start <= time < live.end]
            assert held == sum(live.size for live in there)
            assert sorted(own.at(time), key=str) == sorted(there, key=str)
        assert own.peak == max(own.bytes.tolist(), default=0)


def line(*durations):
    """Tasks one after the other."""
    schedule = Schedule()
    unit = schedule.unit("u")
    for duration in durations:
        schedule.task(unit, duration)
    return schedule.run()


def test_a_tensor_lives_from_its_write_to_its_last_read():
    accesses = [
        Access(1, "L1", 0, 64, True),
        Access(2, "L1", 0, 64, False),
        Access(3, "L1", 0, 64, False),
        Access(4, "L1", 0, 64, True),
        Access(5, "L1", 0, 64, True),
        Access(6, "L1", 0, 64, False),
        Access(2, "L1", 64, 32, False),
        Access(0, "L2", 0, 8, True),
    ]
    lives = live_ranges(line(10, 10, 10, 10, 10, 10, 10), accesses)
    assert [(live.space, live.address, live.start, live.end) for live in lives] == [
        ("L1", 64, 0, 30),  # read before it was written: it was there
        ("L1", 0, 10, 40),
        ("L1", 0, 40, 70),  # two writes make one tensor, from the first of them
        ("L2", 0, 0, 10),
    ]
    assert np.all(occupancy(lives)["L1"].bytes >= 0)
    assert [live.name for live in live_ranges(line(10), accesses[-1:], lambda access: f"t{access.task}")] == ["t0"]
