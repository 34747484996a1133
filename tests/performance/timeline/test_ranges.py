"""Rings that wrap, and sets of bytes, against sets of numbers."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.performance.timeline import Ring
from buda_emu.performance.timeline.tasks import ByteSet, pieces, union_length
from buda_emu.support.errors import HostError

RANGE = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted)


@given(st.lists(RANGE), RANGE)
def test_a_byte_set_is_a_set_of_bytes(ranges, asked):
    found, known = ByteSet(), set()
    for low, high in ranges:
        found.add(low, high)
        known |= set(range(low, high))
    gaps = list(found.missing(*asked))
    assert {byte for low, high in gaps for byte in range(low, high)} == set(range(*asked)) - known
    assert gaps == sorted(gaps)
    assert all(low < high for low, high in gaps)
    assert len(found) == len(known)


@given(st.lists(RANGE))
def test_bytes_of_several_ranges_are_counted_once(ranges):
    assert union_length((low, high) for low, high in ranges) == len({byte for pair in ranges for byte in range(*pair)})


@given(st.integers(0, 9), st.integers(1, 9), st.data())
def test_a_ring_goes_on_at_its_first_byte(low, length, data):
    at = data.draw(st.integers(0, length - 1))
    size = data.draw(st.integers(0, length))
    bytes_ = [byte for first, last in pieces(low + at, size, Ring(low, low + length)) for byte in range(first, last)]
    assert bytes_ == [low + (at + k) % length for k in range(size)]


@pytest.mark.parametrize(("address", "size"), [(3, 1), (20, 1), (4, 17), (5, -1)])
def test_what_is_not_in_the_ring(address, size):
    with pytest.raises(HostError, match="do not lie in the ring from 4 to 20"):
        pieces(address, size, Ring(4, 20))


def test_many_ranges_take_no_time():
    found = ByteSet()
    start = time.process_time()
    for number in range(50_000):
        found.add(number * 7919 % 50_000 * 16, number * 7919 % 50_000 * 16 + 8)
    assert sum(high - low for low, high in found.missing(0, 800_000)) == 400_000
    assert time.process_time() - start < 2
