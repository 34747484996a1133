"""Accesses that meet in bytes and in time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.errors import HostError
from buda_emu.timeline import Access, Schedule, conflicts


def timing(*spans):
    """One unit for each span, which begins and ends then."""
    schedule = Schedule()
    for begin, end in spans:
        unit = schedule.unit("u")
        schedule.task(unit, begin)
        schedule.task(unit, end - begin)
    return schedule.run()


def found(spans, accesses):
    """(kind, address, size) of every conflict; accesses name spans."""
    moved = [access._replace(task=2 * access.task + 1) for access in accesses]
    return [(item.kind, item.address, item.size) for item in conflicts(timing(*spans), moved)]


def write(task, address, size, space="L1"):
    return Access(task, space, address, size, True)


def read(task, address, size, space="L1"):
    return Access(task, space, address, size, False)


def test_two_writes_at_once_race_where_they_overlap():
    spans = [(0, 10), (5, 15)]
    assert found(spans, [write(0, 100, 50), write(1, 120, 100)]) == [("race", 120, 30)]
    assert found(spans, [write(0, 100, 50), write(1, 150, 100)]) == []
    assert found(spans, [write(0, 100, 50), write(1, 120, 100, "other")]) == []


def test_a_read_races_with_a_write_but_not_with_a_read():
    spans = [(0, 4), (5, 15), (8, 12)]
    first = write(0, 0, 100)
    assert found(spans, [first, read(1, 0, 50), write(2, 40, 20)]) == [("race", 40, 10)]
    assert found(spans, [first, read(1, 0, 50), read(2, 0, 50)]) == []


def test_one_after_the_other_is_no_race():
    assert found([(0, 5), (5, 9)], [write(0, 0, 10), read(1, 0, 10)]) == []
    assert found([(0, 5), (5, 9)], [write(0, 0, 10), write(1, 0, 10)]) == []


def test_bytes_that_nobody_wrote():
    spans = [(0, 5), (5, 9)]
    assert found(spans, [write(0, 0, 10), read(1, 4, 10)]) == [("unwritten", 10, 4)]
    assert found(spans, [read(1, 4, 10)]) == [("unwritten", 4, 10)]
    assert found([(0, 2), (2, 4), (4, 6)], [write(0, 0, 4), write(1, 8, 4), read(2, 0, 12)]) == [("unwritten", 4, 4)]


def test_a_task_does_not_race_with_itself():
    assert found([(0, 2), (2, 5)], [write(0, 0, 8), read(1, 0, 8), write(1, 0, 8)]) == []


def test_accesses_of_tasks_that_take_no_time():
    assert found([(0, 0), (0, 4)], [write(0, 0, 8), read(1, 0, 8)]) == []  # before what begins at the same time
    assert found([(0, 4), (2, 2)], [write(0, 0, 8), write(1, 0, 8)]) == [("race", 0, 8)]
    assert found([(3, 3), (4, 4)], [write(0, 0, 8), read(1, 0, 8)]) == []


@pytest.mark.parametrize("wrong", [write(0, -1, 4), write(0, 0, 0), write(99, 0, 4)])
def test_impossible_accesses_are_refused(wrong):
    with pytest.raises(HostError, match="is not possible"):
        conflicts(timing((0, 1)), [wrong])


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 12), st.integers(1, 6), st.booleans()),
        max_size=8,
    )
)
def test_races_are_those_of_the_definition(items):
    spans = [(begin, begin + length) for begin, length, *_ in items]
    accesses = [Access(n, "m", address, size, writes) for n, (_, _, address, size, writes) in enumerate(items)]
    expected = 0
    for n, a in enumerate(accesses):
        for b in accesses[:n]:
            in_time = max(spans[a.task][0], spans[b.task][0]) < min(spans[a.task][1], spans[b.task][1])
            in_bytes = max(a.address, b.address) < min(a.address + a.size, b.address + b.size)
            expected += in_time and in_bytes and (a.writes or b.writes)
    assert sum(kind == "race" for kind, *_ in found(spans, accesses)) == expected
