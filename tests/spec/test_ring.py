from hypothesis import given
from hypothesis import strategies as st

from buda_emu.spec.ring import RingPointers


def test_empty_and_full_differ():
    ring = RingPointers(2)
    assert ring.empty
    assert not ring.full
    ring.advance_write()
    ring.advance_write()
    assert ring.full
    assert ring.occupancy == 2
    ring.advance_read(2)
    assert ring.empty


def test_slots_wrap_at_entries_and_pointers_at_twice_that():
    ring = RingPointers(3)
    slots = []
    for _ in range(7):
        slots.append(ring.advance_write())
        ring.advance_read()
    assert slots == [0, 1, 2, 0, 1, 2, 0]
    assert ring.wr == 1


@given(st.integers(1, 9), st.lists(st.booleans(), max_size=60))
def test_occupancy_counts_pushes_minus_pops(entries, moves):
    ring, count = RingPointers(entries), 0
    for push in moves:
        if push and not ring.full:
            ring.advance_write()
            count += 1
        elif not push and not ring.empty:
            ring.advance_read()
            count -= 1
        assert ring.occupancy == count
        assert ring.full == (count == entries)
        assert ring.empty == (count == 0)


def test_pop_to_frees_what_lies_before():
    ring = RingPointers(4, wr=3)
    ring.pop_to(2)
    assert (ring.rd, ring.occupancy) == (2, 1)


def test_pop_to_past_the_write_pointer_empties():  # NETLIST 4.3 propagation
    ring = RingPointers(2, rd=0, wr=2)
    ring.pop_to(3)
    assert ring.empty
    assert ring.wr == 3


def test_pop_to_takes_values_modulo_twice_the_entries():
    ring = RingPointers(2, rd=2, wr=0)  # two entries
    ring.pop_to(4)
    assert (ring.rd, ring.empty) == (0, True)


def test_local_base_is_where_it_was_placed():
    ring = RingPointers(4)
    ring.place_local(9)
    ring.local += 1
    assert (ring.local_base, ring.local) == (1, 2)


def test_the_local_pointer_moves_on_and_wraps_at_twice_the_entries():
    ring = RingPointers(3)
    ring.place_local(2)
    assert [ring.advance_local(count) for count in (0, 1, 2, 2, 1)] == [2, 2, 0, 2, 1]
    assert ring.local == 2
    assert ring.local_base == 2
