"""Memory that is kept for the next machine."""

import numpy as np

from buda_emu.emulator.memory.memory_pool import LARGE_PAGE, LEAST_BYTES, MemoryPool

COUNT = LEAST_BYTES // 4


def address(array):
    return array.__array_interface__["data"][0]


def test_what_was_given_is_handed_out_again():
    spare = MemoryPool(10 * LEAST_BYTES)
    first = spare.take(2 * COUNT)
    where = address(first)
    spare.give(first.reshape(2, -1)[:1])  # a view will do
    assert spare.take(4 * COUNT + 1).size == 4 * COUNT + 1  # too large
    assert address(spare.take(COUNT + 1)) == where
    assert spare.drop() == 0


def test_the_smallest_that_fits_and_none_that_is_twice_as_large():
    spare = MemoryPool(100 * LEAST_BYTES)
    large, small = spare.take(8 * COUNT), spare.take(4 * COUNT)
    wanted = address(small)
    spare.give(large)
    spare.give(small)
    assert address(spare.take(4 * COUNT)) == wanted
    spare.take(2 * COUNT)
    assert spare.drop() == large.nbytes


def test_little_is_not_kept_and_the_oldest_goes_first():
    spare = MemoryPool(3 * LEAST_BYTES)
    spare.give(np.empty(10, np.float32))
    spare.give(np.empty(4 * COUNT, np.float32))
    assert spare.drop() == 0
    arrays = [spare.take(2 * COUNT), spare.take(COUNT), spare.take(COUNT)]
    for array in arrays:
        spare.give(array)
    assert spare.drop() == 2 * LEAST_BYTES


def test_everyone_gets_their_own_large_one_back():
    spare, count = MemoryPool(100 * LARGE_PAGE), LARGE_PAGE // 4
    arrays = {user: spare.take(count, user) for user in ("a", "b", "", "c")}
    where = {user: address(array) for user, array in arrays.items()}
    for user, array in arrays.items():
        spare.give(array, user)
    assert address(spare.take(count, "b")) == where["b"]
    assert address(spare.take(count, "d")) == where["c"]  # the latest
    assert spare.drop() == 2 * LARGE_PAGE


def test_of_small_ones_everyone_gets_the_latest():
    spare = MemoryPool(10 * LEAST_BYTES)
    first, second = spare.take(COUNT, "a"), spare.take(COUNT, "b")
    spare.give(first, "a")
    spare.give(second, "b")
    assert address(spare.take(COUNT, "a")) == address(second)


def test_memory_from_elsewhere():
    spare = MemoryPool(100 * LEAST_BYTES)
    made = np.empty((4, COUNT, 1), np.float32)
    spare.give(made[:1])
    taken = spare.take(4 * COUNT - 1)
    assert taken.shape == (4 * COUNT - 1,)
    assert np.shares_memory(taken, made)
    made.flags.writeable = False
    spare.give(made)
    assert spare.drop() == 0


def test_memory_made_for_other_types_is_left_to_the_system():
    spare = MemoryPool(10 * LEAST_BYTES)
    spare.give(np.empty(4 * COUNT, np.uint8))
    assert spare.drop() == 0
    spare.give(spare.take(COUNT).view(np.uint8).reshape(4, -1))  # a view of other numbers will do
    assert spare.drop() == 4 * COUNT


def test_a_bound_lets_go_of_the_oldest():
    spare = MemoryPool(10 * LEAST_BYTES)
    for count in (3, 2, 1):
        spare.give(np.empty(count * COUNT, np.float32))
    spare.shrink(5 * LEAST_BYTES)  # that of 3 goes
    spare.give(np.empty(4 * COUNT, np.float32))  # `shrink` is for what was there
    assert spare.drop() == 7 * LEAST_BYTES


def test_no_more_is_kept_than_the_limit():
    spare = MemoryPool(4 * LEAST_BYTES)
    for count in (3, 2, 5):
        spare.give(np.empty(count * COUNT, np.float32))
    assert spare.drop() == 2 * LEAST_BYTES  # 3 went for 2, 5 is too much by itself


def test_what_is_asked_for_in_little_comes_from_the_allocator():
    spare = MemoryPool(10 * LEAST_BYTES)
    spare.give(np.empty(COUNT, np.float32))
    assert spare.take(COUNT - 1).size == COUNT - 1
    assert spare.drop() == LEAST_BYTES
